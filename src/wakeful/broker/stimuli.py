"""Stimulus rows, and the moves between the states of those that have not ended."""

from collections.abc import Callable, Collection, Sequence

from wakeful import attachments
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.errors import Invariant
from wakeful.vocabulary.kinds import Asleep, Joins, KindRule, Refused, kinds_where
from wakeful.vocabulary.stimulus import MOVES, Place, Priority, State, Stimulus

NEVER = 2**62  # looked at again only when somebody says so

STIMULI = RowTable("stimuli", Stimulus)


def _listed(test: Callable[[KindRule], bool]) -> str:
    """Return the kinds that pass a test as a statement lists them: words of ours, known now."""
    return ", ".join(f"'{kind}'" for kind in kinds_where(test))


_CAPPED = _listed(lambda rule: rule.is_capped)
_SET_AGAIN = _listed(lambda rule: rule.refused is Refused.SUPPRESSED)  # by their own trigger

# Statements over some of the kinds; the lists are words of ours.
_SAID = (
    "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    f"AND seq <= :up_to AND kind IN ({_listed(lambda rule: rule.moves_route)}) LIMIT :limit"
)
_COUNT_SAID = (
    "SELECT COUNT(*) FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    f"AND kind IN ({_listed(lambda rule: rule.moves_route)})"
)
_WITH_SAID = (
    "SELECT DISTINCT session_key FROM stimuli "  # noqa: S608
    "WHERE session_key IN :keys AND state IN ('pending', 'parked') "
    f"AND kind IN ({_listed(lambda rule: rule.moves_route)})"
)
_COUNT_WAITING = (
    f"SELECT session_key, COUNT(*), SUM(CASE WHEN kind IN ({_CAPPED}) THEN 1 ELSE 0 END) "  # noqa: S608
    "FROM stimuli WHERE session_key IN :keys AND state IN ('pending', 'parked') "
    "GROUP BY session_key"
)
_PARK_LANE = (
    "UPDATE stimuli SET state = 'parked', state_reason = :reason, due_at = :never "  # noqa: S608
    "WHERE session_key = :key AND state IN ('pending', 'parked') AND state = 'pending' "
    f"AND kind IN ({_listed(lambda rule: rule.refused is not Refused.SUPPRESSED)}) RETURNING id"
)
_WAKER = (
    "SELECT 1 FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    "AND state = 'pending' AND due_at <= :now "
    f"AND ((kind IN ({_listed(lambda rule: rule.asleep is Asleep.WAKES)}) AND priority < 2) "
    f"OR (kind IN ({_listed(lambda rule: rule.asleep is Asleep.WAKES_NOW)}) AND priority = 0)) "
    "LIMIT 1"
)
_SELF_WAKING = (
    "SELECT id FROM stimuli WHERE session_key = :key AND state IN ('pending', 'parked') "  # noqa: S608
    f"AND state = 'pending' AND kind IN ({_SET_AGAIN})"
)

_TAKEN_ALONG = _listed(lambda rule: rule.joins is Joins.HEARTBEAT)
_IS_TAKEN_ALONG = (
    "session_key = :key AND state IN ('pending', 'parked') AND state = 'pending' "
    f"AND kind IN ({_TAKEN_ALONG})"
)
_RELEASE = (
    f"UPDATE stimuli SET due_at = :now WHERE {_IS_TAKEN_ALONG} "  # noqa: S608 (words of ours)
    "AND due_at = :never RETURNING id"
)
_NEXT_ACKNOWLEDGED = (
    "SELECT MIN(due_at) FROM stimuli WHERE session_key = :key "  # noqa: S608 (words of ours)
    "AND state IN ('pending', 'parked') AND state = 'pending' AND due_at > :now "
    f"AND kind IN ({_listed(lambda rule: rule.acknowledges)})"
)

# Per state, those that a stimulus may come from.
MAY_BECOME: dict[State, list[str]] = {
    target: sorted(state for state, targets in MOVES.items() if target in targets)
    for target in State
}


_WAITING: dict[bool | None, str] = {
    debounced: STIMULI.select(
        "WHERE session_key = :key AND state IN ('pending', 'parked') AND due_at <= :now "
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
            "WHERE session_key = :key AND state IN ('pending', 'parked') "
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
            "UPDATE stimuli SET state = 'claimed', state_reason = NULL, turn_id = :turn_id "
            "WHERE id IN :ids AND state IN :allowed",
            ids=list(ids),
            turn_id=turn_id,
            allowed=MAY_BECOME[State.CLAIMED],
        ),
        ids,
        State.CLAIMED,
    )


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


def has_held(tx: Tx, session_key: str) -> bool:
    """Tell whether something is held in a session that its agent is shown without asking."""
    row = tx.one(f"SELECT 1 FROM stimuli WHERE {_SHOWN_HELD} LIMIT 1", key=session_key, now=tx.now)  # noqa: S608
    return row is not None


def count_held(tx: Tx, session_key: str) -> int:
    """Return how much of that there is."""
    row = tx.one(f"SELECT COUNT(*) FROM stimuli WHERE {_SHOWN_HELD}", key=session_key, now=tx.now)  # noqa: S608
    assert row is not None
    return row[0]


def give_held(
    tx: Tx, session_key: str, turn_id: str, most: int, most_characters: int
) -> list[Stimulus]:
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


def park_alike(tx: Tx, like: Stimulus, reason: str, look_at: int) -> list[str]:
    """Put aside, with one statement, whatever in a lane is of the kind that may not run now."""
    rows = tx.all(
        "UPDATE stimuli SET state = 'parked', state_reason = :reason, due_at = :look_at "  # noqa: S608
        f"WHERE {_ALIKE} RETURNING id",
        reason=reason,
        look_at=look_at,
        **_class_of(tx, like),
    )
    return [row[0] for row in rows]


def alike(tx: Tx, like: Stimulus) -> list[str]:
    """Return the ids of whatever is due in a lane and is of one kind for whoever may refuse it."""
    rows = tx.all(f"SELECT id FROM stimuli WHERE {_ALIKE}", **_class_of(tx, like))  # noqa: S608
    return [row[0] for row in rows]


# What the gate tells nothing apart in: what it says of one, it says of all.
_ALIKE = (
    "session_key = :key AND state IN ('pending', 'parked') AND due_at <= :now "
    "AND kind = :kind AND priority = :priority AND trust = :trust AND source = :source "
    "AND ignores_quiet_hours = :ignores AND (root_id = :root_id OR (:is_root = 1 AND root_id = id))"
)


def _class_of(tx: Tx, like: Stimulus) -> dict[str, object]:
    return {
        "key": like.session_key,
        "now": tx.now,
        "kind": like.kind.value,
        "priority": int(like.priority),
        "trust": like.trust.value,
        "source": like.source,
        "ignores": int(like.ignores_quiet_hours),
        "root_id": like.root_id,  # who is at the beginning of a chain has a say, too
        "is_root": int(like.root_id == like.id),
    }


def park_lane(tx: Tx, session_key: str, reason: str) -> list[str]:
    """Put aside, until somebody says so, whatever waits in a lane and may be put aside."""
    rows = tx.all(
        _PARK_LANE,
        key=session_key,
        reason=reason,
        never=NEVER,
    )
    return [row[0] for row in rows]


def self_waking(tx: Tx, session_key: str) -> list[str]:
    """Return the ids of what waits in a lane and is set again by its own trigger."""
    rows = tx.all(
        _SELF_WAKING,
        key=session_key,
    )
    return [row[0] for row in rows]


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


def unpark(tx: Tx, session_key: str, reason: str) -> list[str]:
    """Return what was parked in a lane for one reason; it still starts no earlier than wished."""
    return [stimulus_id for stimulus_id, _ in unpark_all(tx, [session_key], reason, None)]


def parked_lanes(tx: Tx, agent_id: str, reason: str, after: str, limit: int) -> list[str]:
    """Return the next lanes of an agent in which something is parked for a reason, in order."""
    rows = tx.all(
        "SELECT DISTINCT session_key FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "
        "AND state_reason = :reason AND session_key > :after ORDER BY session_key LIMIT :limit",
        agent_id=agent_id,
        reason=reason,
        after=after,
        limit=limit,
    )
    return [row[0] for row in rows]


# Said twice for the databases: the first part is the condition of the index of what waits.
_PARKED_IN = (
    "session_key IN :keys AND state IN ('pending', 'parked') AND state = 'parked' "
    "AND state_reason = :reason"
)


def unpark_all(
    tx: Tx, session_keys: Sequence[str], reason: str, becomes: str | None
) -> list[tuple[str, str]]:
    """Return to their lanes, with one statement, what was parked there for one reason.

    Each starts no earlier than its sender wished; ids and lanes are returned.
    """
    rows = tx.all(
        "UPDATE stimuli SET state = 'pending', state_reason = :becomes, "  # noqa: S608
        "due_at = CASE WHEN not_before > :now AND not_before > accepted_at "
        "THEN not_before ELSE :now END "
        f"WHERE {_PARKED_IN} RETURNING id, session_key",
        keys=list(session_keys),
        reason=reason,
        becomes=becomes,
        now=tx.now,
    )
    return sorted((row[0], row[1]) for row in rows)


def look_at_parked(tx: Tx, session_keys: Sequence[str], reason: str, look_at: int) -> None:
    """Look again at another time at what lanes have parked for one reason."""
    tx.run(
        f"UPDATE stimuli SET due_at = :look_at WHERE {_PARKED_IN}",  # noqa: S608
        keys=list(session_keys),
        reason=reason,
        look_at=look_at,
    )


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
