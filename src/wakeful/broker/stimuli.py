"""Stimulus rows and the moves between their states."""

from collections.abc import Collection, Sequence

from wakeful.broker import attachments
from wakeful.store.database import Tx
from wakeful.store.rows import Table
from wakeful.vocabulary.errors import Invariant
from wakeful.vocabulary.stimulus import MOVES, TERMINAL, Place, State, Stimulus

STIMULI = Table("stimuli", Stimulus)
_FROM: dict[State, list[str]] = {
    target: sorted(state for state, targets in MOVES.items() if target in targets)
    for target in State
}


def add(tx: Tx, rows: Sequence[Stimulus]) -> None:
    tx.many(STIMULI.insert, [STIMULI.params(row) for row in rows])


def get(tx: Tx, stimulus_id: str) -> Stimulus | None:
    row = tx.one(STIMULI.select("WHERE id = :id"), id=stimulus_id)
    return None if row is None else STIMULI.read(row)


def waiting(tx: Tx, session_key: str, limit: int) -> list[Stimulus]:
    """Return what waits in a lane and is due, in the order in which it should run."""
    rows = tx.all(
        STIMULI.select(
            "WHERE session_key = :key AND state IN ('pending', 'parked') AND due_at <= :now "
            "ORDER BY priority, place, seq LIMIT :limit"
        ),
        key=session_key,
        now=tx.now,
        limit=limit,
    )
    return [STIMULI.read(row) for row in rows]


def head_id(tx: Tx, session_key: str) -> str | None:
    """Return the id of what should run first in a lane, without reading the rest of its row."""
    row = tx.one(
        "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "
        "AND due_at <= :now ORDER BY priority, place, seq LIMIT 1",
        key=session_key,
        now=tx.now,
    )
    return None if row is None else row[0]


def unreadable(tx: Tx, session_key: str, limit: int) -> list[str]:
    """Return the ids of what is due in a lane and cannot be read."""
    rows = tx.all(
        STIMULI.select(
            "WHERE session_key = :key AND state IN ('pending', 'parked') AND due_at <= :now "
            "ORDER BY priority, place, seq LIMIT :limit"
        ),
        key=session_key,
        now=tx.now,
        limit=limit,
    )
    known = {stimulus.id for stimulus in STIMULI.read_known(rows)}
    return [row[0] for row in rows if row[0] not in known]


def pending(tx: Tx, session_key: str, limit: int) -> list[Stimulus]:
    """Return what waits in a lane and is not parked, due or not."""
    rows = tx.all(
        STIMULI.select(
            "WHERE session_key = :key AND state = 'pending' AND state IN ('pending', 'parked') "
            "ORDER BY priority, place, seq LIMIT :limit"
        ),
        key=session_key,
        limit=limit,
    )
    return [STIMULI.read(row) for row in rows]


def messages(tx: Tx, session_key: str, limit: int) -> list[str]:
    """Return the ids of what people have waiting in a lane, parked ones included."""
    rows = tx.all(
        "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "
        "AND origin IN ('user', 'hub') LIMIT :limit",
        key=session_key,
        limit=limit,
    )
    return [row[0] for row in rows]


def all_waiting(tx: Tx, session_key: str, limit: int) -> list[str]:
    """Return the ids of whatever waits in a session, also what is held for its agent."""
    rows = tx.all(
        "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "
        "UNION ALL SELECT id FROM stimuli WHERE session_key = :key AND state = 'held' LIMIT :limit",
        key=session_key,
        limit=limit,
    )
    return [row[0] for row in rows]


def count_waiting(tx: Tx, session_keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return, per lane, how many stimuli wait and how many of them count against the cap."""
    rows = tx.all(
        "SELECT session_key, COUNT(*), "
        "SUM(CASE WHEN origin IN ('user', 'hub', 'a2a') THEN 1 ELSE 0 END) "
        "FROM stimuli WHERE session_key IN :keys AND state IN ('pending', 'parked') "
        "GROUP BY session_key",
        keys=list(session_keys),
    )
    return {key: (total, capped) for key, total, capped in rows}


def oldest_capped(tx: Tx, session_key: str) -> Stimulus | None:
    """Return the waiting message that the cap would drop first."""
    row = tx.one(
        STIMULI.select(
            "WHERE session_key = :key AND state IN ('pending', 'parked') "
            "AND origin IN ('user', 'hub', 'a2a') AND place > :interrupted ORDER BY seq LIMIT 1"
        ),
        key=session_key,
        interrupted=int(Place.INTERRUPTED),
    )
    return None if row is None else STIMULI.read(row)


def of_turn(tx: Tx, turn_id: str) -> list[str]:
    """Return the ids of the stimuli a turn holds, in order."""
    rows = tx.all(
        "SELECT id FROM stimuli WHERE turn_id = :turn_id AND state = 'claimed' "
        "ORDER BY priority, place, seq",
        turn_id=turn_id,
    )
    return [row[0] for row in rows]


def claim(tx: Tx, ids: Collection[str], turn_id: str) -> None:
    """Give stimuli to a turn; they stay claimed until it ends."""
    _expect(
        tx.run(
            "UPDATE stimuli SET state = 'claimed', state_reason = NULL, turn_id = :turn_id "
            "WHERE id IN :ids AND state IN :allowed",
            ids=list(ids),
            turn_id=turn_id,
            allowed=_FROM[State.CLAIMED],
        ),
        ids,
        State.CLAIMED,
    )


def move(tx: Tx, ids: Collection[str], to: State, reason: str | None = None) -> None:
    """Move stimuli to another state; a move that the table does not have is a bug."""
    if not ids:
        return
    _expect(
        tx.run(
            "UPDATE stimuli SET state = :to, state_reason = :reason, settled_at = :settled_at "
            "WHERE id IN :ids AND state IN :allowed",
            ids=list(ids),
            to=to.value,
            reason=reason,
            settled_at=tx.now if to in TERMINAL else None,
            allowed=_FROM[to],
        ),
        ids,
        to,
    )


def park(tx: Tx, ids: Collection[str], reason: str, look_at: int) -> None:
    """Put stimuli aside until `look_at`; parking a parked one only moves that time."""
    tx.run(
        "UPDATE stimuli SET state = 'parked', state_reason = :reason, due_at = :look_at "
        "WHERE id IN :ids AND state IN ('pending', 'parked')",
        ids=list(ids),
        reason=reason,
        look_at=look_at,
    )


def give_back(tx: Tx, turn_id: str) -> list[str]:
    """Return a preempted turn's stimuli to the lane, ahead of whatever else waits there."""
    rows = tx.all(
        "UPDATE stimuli SET state = 'pending', state_reason = 'interrupted', place = :place, "
        "is_debounced = 0, preemptions = preemptions + 1 "
        "WHERE turn_id = :turn_id AND state = 'claimed' RETURNING id",
        turn_id=turn_id,
        place=int(Place.INTERRUPTED),
    )
    return [row[0] for row in rows]


def unpark(tx: Tx, session_key: str, reason: str) -> list[str]:
    """Return what was parked in a lane for one reason; it still starts no earlier than wished."""
    rows = tx.all(
        "UPDATE stimuli SET state = 'pending', state_reason = NULL, "
        "due_at = CASE WHEN not_before > :now AND not_before > accepted_at "
        "THEN not_before ELSE :now END "
        "WHERE session_key = :key AND state = 'parked' AND state_reason = :reason RETURNING id",
        key=session_key,
        reason=reason,
        now=tx.now,
    )
    return [row[0] for row in rows]


def bring_forward(tx: Tx, session_key: str) -> None:
    """Make due what nobody wished for later, though the clock it came by was ahead of ours."""
    tx.run(
        "UPDATE stimuli SET due_at = :now WHERE session_key = :key AND state = 'pending' "
        "AND state IN ('pending', 'parked') AND due_at > :now AND not_before <= accepted_at",
        key=session_key,
        now=tx.now,
    )


# Shown, never decided on: whoever unparks locks these lanes and looks again.
PARKED_LANES = (
    "SELECT DISTINCT session_key FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "
    "AND state_reason = :reason LIMIT :limit"
)


def is_loop_known(tx: Tx, root_id: str) -> bool:
    """Tell whether this causal chain was already cut once."""
    return (
        tx.one(
            "SELECT 1 FROM stimuli WHERE root_id = :root_id AND state_reason = 'loop' LIMIT 1",
            root_id=root_id,
        )
        is not None
    )


def prune(tx: Tx, after: str, before: int, limit: int) -> str | None:
    """Forget stimuli settled before an instant; ids are in order of time, so the old come first."""
    rows = tx.all(
        "SELECT id, settled_at FROM stimuli WHERE id > :after AND id < :until ORDER BY id "
        "LIMIT :limit",
        after=after,
        until=f"st_{before:012x}",
        limit=limit,
    )
    old = [row[0] for row in rows if row[1] is not None and row[1] < before]
    attachments.release(tx, old)
    tx.run("DELETE FROM stimuli WHERE id IN :ids", ids=old)
    return rows[-1][0] if len(rows) == limit else None


def _expect(changed: int, ids: Collection[str], to: State) -> None:
    if changed != len(ids):
        raise Invariant(f"{len(ids)} stimuli should become {to}, {changed} could: {sorted(ids)!r}")
