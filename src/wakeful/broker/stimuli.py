"""Stimulus rows, and the moves between the states of those that have not ended."""

from collections.abc import Callable, Collection, Sequence

from wakeful import attachments
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.errors import Invariant
from wakeful.vocabulary.kinds import Asleep, Joins, KindRule, Refused, kinds_where
from wakeful.vocabulary.stimulus import MOVES, Place, State, Stimulus

NEVER = 2**62  # looked at again only when somebody says so

STIMULI = RowTable("stimuli", Stimulus)


def listed(test: Callable[[KindRule], bool]) -> str:
    """Return the kinds that pass a test as a statement lists them: words of ours, known now."""
    return ", ".join(f"'{kind}'" for kind in kinds_where(test))


_CAPPED = listed(lambda rule: rule.is_capped)
_SET_AGAIN = listed(lambda rule: rule.refused is Refused.SUPPRESSED)  # by their own trigger

# `priority >= 0` holds for all: by it SQLite takes the index of what waits, which begins with the
# session and the priority, and not that of all that ever came to the session.

# Statements over some of the kinds; the lists are words of ours.
_SAID = (
    "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    "AND priority >= 0 "
    f"AND seq <= :up_to AND kind IN ({listed(lambda rule: rule.moves_route)}) LIMIT :limit"
)
_COUNT_SAID = (
    "SELECT COUNT(*) FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    "AND priority >= 0 "
    f"AND kind IN ({listed(lambda rule: rule.moves_route)})"
)
_WITH_SAID = (
    "SELECT DISTINCT session_key FROM stimuli "  # noqa: S608
    "WHERE session_key IN :keys AND state IN ('pending', 'parked') AND priority >= 0 "
    f"AND kind IN ({listed(lambda rule: rule.moves_route)})"
)
_COUNT_WAITING = (
    f"SELECT session_key, COUNT(*), SUM(CASE WHEN kind IN ({_CAPPED}) THEN 1 ELSE 0 END) "  # noqa: S608
    "FROM stimuli WHERE session_key IN :keys AND state IN ('pending', 'parked') AND priority >= 0 "
    "GROUP BY session_key"
)
_WAKER = (
    "SELECT 1 FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    "AND priority >= 0 "
    "AND state = 'pending' AND due_at <= :now "
    "AND (in_inbox = 0 OR priority = 0) "  # else it will be held, and opens no turn
    f"AND ((kind IN ({listed(lambda rule: rule.asleep is Asleep.WAKES)}) AND priority < 2) "
    f"OR (kind IN ({listed(lambda rule: rule.asleep is Asleep.WAKES_NOW)}) AND priority = 0)) "
    "LIMIT 1"
)
_SELF_WAKING = (
    "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    "AND priority >= 0 "
    f"AND state = 'pending' AND kind IN ({_SET_AGAIN})"
)

_TAKEN_ALONG = listed(lambda rule: rule.joins is Joins.HEARTBEAT)
_WAITS_FOR_HEARTBEAT = (
    "state IN ('pending', 'parked') AND priority >= 0 AND state = 'pending' "
    f"AND kind IN ({_TAKEN_ALONG})"
)
_IS_TAKEN_ALONG = f"session_key = :key AND {_WAITS_FOR_HEARTBEAT}"
_WITH_TAKEN_ALONG = (
    "SELECT DISTINCT session_key FROM stimuli WHERE session_key IN :keys "  # noqa: S608 (words of ours)
    f"AND {_WAITS_FOR_HEARTBEAT} AND trust = 'operator'"
)
_RELEASE = (
    f"UPDATE stimuli SET due_at = :now WHERE {_IS_TAKEN_ALONG} "  # noqa: S608 (words of ours)
    "AND due_at = :never RETURNING id"
)
_NEXT_ACKNOWLEDGED = (
    "SELECT MIN(due_at) FROM stimuli WHERE session_key = :key "  # noqa: S608 (words of ours)
    "AND state IN ('pending', 'parked') AND priority >= 0 AND state = 'pending' AND due_at > :now "
    f"AND kind IN ({listed(lambda rule: rule.acknowledges)})"
)

# Per state, those that a stimulus may come from.
MAY_BECOME: dict[State, list[str]] = {
    target: sorted(state for state, targets in MOVES.items() if target in targets)
    for target in State
}


_WAITING: dict[bool | None, str] = {
    debounced: STIMULI.select(
        "WHERE session_key = :key AND state IN ('pending', 'parked') "
        "AND priority >= 0 AND due_at <= :now "
        f"{narrowed}ORDER BY priority, place, seq LIMIT :limit"
    )
    for debounced, narrowed in (
        (None, ""),
        (True, "AND is_debounced = 1 "),
        (False, "AND is_debounced = 0 "),
    )
}


def add(tx: Tx, rows: Sequence[Stimulus]) -> None:
    tx.many(STIMULI.insert, [STIMULI.params(row) for row in rows])


def get(tx: Tx, stimulus_id: str) -> Stimulus | None:
    row = tx.one(STIMULI.select("WHERE id = :id"), id=stimulus_id)
    return None if row is None else STIMULI.read(row)


def waiting(
    tx: Tx, session_key: str, limit: int, *, debounced: bool | None = None
) -> list[Stimulus]:
    """Return what waits in a lane and is due, in the order in which it should run.

    With `debounced`, only what waits for the window, or only what does not.
    """
    rows = tx.all(
        _WAITING[debounced],
        key=session_key,
        now=tx.now,
        limit=limit,
    )
    return [STIMULI.read(row) for row in rows]


def has_waker(tx: Tx, session_key: str) -> bool:
    """Tell whether something waits in a lane, and is due, that no sleep could go on beside."""
    return tx.one(_WAKER, key=session_key, now=tx.now) is not None


def head_id(tx: Tx, session_key: str) -> str | None:
    """Return the id of what should run first in a lane, without reading the rest of its row."""
    row = tx.one(
        "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "
        "AND priority >= 0 "
        "AND due_at <= :now ORDER BY priority, place, seq LIMIT 1",
        key=session_key,
        now=tx.now,
    )
    return None if row is None else row[0]


def unreadable(tx: Tx, session_key: str, limit: int) -> list[str]:
    """Return the ids of what is due in a lane and cannot be read."""
    rows = tx.all(
        STIMULI.select(
            "WHERE session_key = :key AND state IN ('pending', 'parked') "
            "AND priority >= 0 AND due_at <= :now "
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
            "AND priority >= 0 "
            "ORDER BY priority, place, seq LIMIT :limit"
        ),
        key=session_key,
        limit=limit,
    )
    return [STIMULI.read(row) for row in rows]


def said(tx: Tx, session_key: str, up_to: int, limit: int) -> list[str]:
    """Return the ids of what people have waiting in a lane up to a number, parked ones included."""
    rows = tx.all(
        _SAID,
        key=session_key,
        up_to=up_to,
        limit=limit,
    )
    return [row[0] for row in rows]


def count_said(tx: Tx, session_key: str) -> int:
    """Return how much people have waiting in a lane."""
    row = tx.one(_COUNT_SAID, key=session_key)
    assert row is not None
    return row[0]


def with_something_said(tx: Tx, session_keys: Sequence[str]) -> set[str]:
    """Return the lanes in which something waits that people said."""
    return {row[0] for row in tx.all(_WITH_SAID, keys=list(session_keys))}


def all_waiting(tx: Tx, session_key: str, limit: int) -> list[str]:
    """Return the ids of whatever waits in a session, also what is held for its agent."""
    rows = tx.all(
        "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "
        "AND priority >= 0 "
        "UNION ALL SELECT id FROM stimuli WHERE session_key = :key AND state = 'held' LIMIT :limit",
        key=session_key,
        limit=limit,
    )
    return [row[0] for row in rows]


def count_waiting(tx: Tx, session_keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return, per lane, how many stimuli wait and how many of them count against the cap."""
    rows = tx.all(
        _COUNT_WAITING,
        keys=list(session_keys),
    )
    return {key: (total, capped) for key, total, capped in rows}


def oldest_capped(tx: Tx, session_key: str) -> Stimulus | None:
    """Return the waiting message that the cap would drop first."""
    row = tx.one(
        STIMULI.select(
            "WHERE session_key = :key AND state IN ('pending', 'parked') AND priority >= 0 "
            f"AND kind IN ({_CAPPED}) AND place > :interrupted ORDER BY seq LIMIT 1"
        ),
        key=session_key,
        interrupted=int(Place.INTERRUPTED),
    )
    return None if row is None else STIMULI.read(row)


def claim(tx: Tx, ids: Collection[str], turn_id: str) -> None:
    """Give stimuli to a turn; they stay claimed until it ends."""
    _expect(
        tx.run(
            "UPDATE stimuli SET state = 'claimed', state_reason = NULL, turn_id = :turn_id, "
            "claimed_at = :now WHERE id IN :ids AND state IN :allowed",
            ids=list(ids),
            turn_id=turn_id,
            now=tx.now,
            allowed=MAY_BECOME[State.CLAIMED],
        ),
        ids,
        State.CLAIMED,
    )


def self_waking(tx: Tx, session_key: str) -> list[str]:
    """Return the ids of what waits in a lane and is set again by its own trigger."""
    rows = tx.all(
        _SELF_WAKING,
        key=session_key,
    )
    return [row[0] for row in rows]


def with_something_to_take_along(tx: Tx, session_keys: Sequence[str]) -> set[str]:
    """Return the lanes in which something waits for a heartbeat that did not come from outside."""
    return {row[0] for row in tx.all(_WITH_TAKEN_ALONG, keys=list(session_keys))}


def taken_along(tx: Tx, session_key: str, limit: int) -> list[Stimulus]:
    """Return what waits in a lane for a heartbeat, in order; what came from outside does not."""
    rows = tx.all(
        STIMULI.select(f"WHERE {_IS_TAKEN_ALONG} AND trust = 'operator' ORDER BY seq LIMIT :limit"),
        key=session_key,
        limit=limit,
    )
    return [STIMULI.read(row) for row in rows]


def release_taken_along(tx: Tx, session_key: str) -> list[str]:
    """Make due what waits in a lane for a heartbeat that does not come."""
    rows = tx.all(_RELEASE, key=session_key, now=tx.now, never=NEVER)
    return [row[0] for row in rows]


def next_acknowledged(tx: Tx, session_key: str) -> int | None:
    """Return when the next heartbeat starts that waits in a lane for others to ask for it, too."""
    row = tx.one(_NEXT_ACKNOWLEDGED, key=session_key, now=tx.now)
    return None if row is None else row[0]


def taken_up_again(tx: Tx, turn_id: str) -> list[Stimulus]:
    """Return what a turn works on that an earlier one was interrupted in, in lane order."""
    rows = tx.all(
        STIMULI.select(
            "WHERE turn_id = :turn_id AND state = 'claimed' AND preemptions > 0 ORDER BY seq"
        ),
        turn_id=turn_id,
    )
    return [STIMULI.read(row) for row in rows]


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


def bring_forward(tx: Tx, session_key: str) -> None:
    """Make due what nobody wished for later, though the clock it came by was ahead of ours."""
    tx.run(
        "UPDATE stimuli SET due_at = :now WHERE session_key = :key AND state = 'pending' "
        "AND state IN ('pending', 'parked') "
        "AND priority >= 0 AND due_at > :now AND not_before <= accepted_at",
        key=session_key,
        now=tx.now,
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
