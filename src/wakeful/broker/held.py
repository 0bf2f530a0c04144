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


_SHOWN_HELD = (
    f"session_key = :key AND state = 'held' AND priority < {int(Priority.LATER)} "
    "AND (expires_at IS NULL OR expires_at >= :now)"
)


def has_some(tx: Tx, session_key: str) -> bool:
    """Tell whether something is held in a session that its agent is shown without asking."""
    row = tx.one(f"SELECT 1 FROM stimuli WHERE {_SHOWN_HELD} LIMIT 1", key=session_key, now=tx.now)  # noqa: S608
    return row is not None


def count(tx: Tx, session_key: str) -> int:
    """Return how much of that there is."""
    row = tx.one(f"SELECT COUNT(*) FROM stimuli WHERE {_SHOWN_HELD}", key=session_key, now=tx.now)  # noqa: S608
    assert row is not None
    return row[0]


def give(tx: Tx, session_key: str, turn_id: str, most: int, most_characters: int) -> list[Stimulus]:
    """Give a turn what is held in its session, the first first; the caller must settle it.

    The first is given however long it is.
    """
    rows = tx.all(
        "UPDATE stimuli SET turn_id = :turn_id WHERE state = 'held' AND id IN ("  # noqa: S608
        "SELECT id FROM (SELECT id, ROW_NUMBER() OVER places AS place, "
        "SUM(LENGTH(text)) OVER places AS characters "
        f"FROM stimuli WHERE {_SHOWN_HELD} WINDOW places AS (ORDER BY priority, seq)) AS found "
        "WHERE place = 1 OR (place <= :most AND characters <= :most_characters)) "
        f"RETURNING {STIMULI.columns}",
        key=session_key,
        now=tx.now,
        turn_id=turn_id,
        most=most,
        most_characters=most_characters,
    )
    return sorted(map(STIMULI.read, rows), key=lambda one: (one.priority, one.seq))
