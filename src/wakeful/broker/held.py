"""What is held in a session until its agent asks for it, or a turn begins that is shown it."""

from wakeful.broker.stimuli import MAY_BECOME, STIMULI
from wakeful.store.database import Tx
from wakeful.vocabulary.stimulus import Priority, State, Stimulus


def hold(tx: Tx, stimulus_id: str, reason: str | None) -> None:
    """Leave a stimulus to the inbox, until its agent asks for it."""
    tx.run(
        "UPDATE stimuli SET state = 'held', state_reason = :reason "
        "WHERE id = :id AND state IN :allowed",
        id=stimulus_id,
        reason=reason,
        allowed=MAY_BECOME[State.HELD],
    )


_HELD = (
    "session_key = :key AND state = 'held' AND priority <= :floor "
    "AND (expires_at IS NULL OR expires_at >= :now)"
)


def has_some(tx: Tx, session_key: str) -> bool:
    """Tell whether something is held in a session that its agent is shown without asking."""
    row = tx.one(
        f"SELECT 1 FROM stimuli WHERE {_HELD} LIMIT 1",  # noqa: S608
        key=session_key,
        floor=int(Priority.NEXT),
        now=tx.now,
    )
    return row is not None


def count(tx: Tx, session_key: str, floor: Priority = Priority.NEXT) -> int:
    """Return how much of what is held in a session is at least as urgent as this."""
    row = tx.one(
        f"SELECT COUNT(*) FROM stimuli WHERE {_HELD}",  # noqa: S608
        key=session_key,
        floor=int(floor),
        now=tx.now,
    )
    assert row is not None
    return row[0]


def give(
    tx: Tx,
    session_key: str,
    turn_id: str,
    most: int,
    most_bytes: int,
    floor: Priority = Priority.NEXT,
) -> list[Stimulus]:
    """Give a turn what is held in a session, the first first; the caller must settle it.

    The first is given however long it is. It is one statement, under the lock of the session's
    lane: nothing is given to two.
    """
    rows = tx.all(
        "UPDATE stimuli SET turn_id = :turn_id, claimed_at = :now WHERE state = 'held' AND id IN ("  # noqa: S608
        "SELECT id FROM (SELECT id, ROW_NUMBER() OVER places AS place, "
        "SUM(OCTET_LENGTH(text)) OVER places AS bytes "
        f"FROM (SELECT id, text, priority, seq FROM stimuli WHERE {_HELD} "
        "ORDER BY priority, seq LIMIT :most) AS first "
        "WINDOW places AS (ORDER BY priority, seq)) AS found "
        "WHERE place = 1 OR bytes <= :most_bytes) "
        f"RETURNING {STIMULI.columns}",
        key=session_key,
        floor=int(floor),
        now=tx.now,
        turn_id=turn_id,
        most=most,
        most_bytes=most_bytes,
    )
    return sorted(map(STIMULI.read, rows), key=lambda one: (one.priority, one.seq))


def was_given(tx: Tx, turn_id: str) -> bool:
    """Tell whether an open turn was given something that had been held."""
    row = tx.one(
        "SELECT 1 FROM stimuli WHERE turn_id = :turn_id AND state = 'merged' LIMIT 1",
        turn_id=turn_id,
    )
    return row is not None
