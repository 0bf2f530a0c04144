"""What waits in a lane and may not run now: put aside for a reason, and let go on."""

from collections.abc import Sequence

from wakeful.broker.stimuli import NEVER, listed
from wakeful.store.database import Tx
from wakeful.vocabulary.kinds import Refused
from wakeful.vocabulary.stimulus import Stimulus

_PARK_LANE = (
    "UPDATE stimuli SET state = 'parked', state_reason = :reason, due_at = :never "  # noqa: S608
    "WHERE session_key = :key AND state IN ('pending', 'parked') "
    "AND priority >= 0 AND state = 'pending' "
    f"AND kind IN ({listed(lambda rule: rule.refused is not Refused.SUPPRESSED)}) RETURNING id"
)
# What the gate tells nothing apart in: what it says of one, it says of all.
_ALIKE = (
    "session_key = :key AND state IN ('pending', 'parked') AND priority >= 0 AND due_at <= :now "
    "AND kind = :kind AND priority = :priority AND trust = :trust AND source = :source "
    "AND ignores_quiet_hours = :ignores AND (root_id = :root_id OR (:is_root = 1 AND root_id = id))"
)
# Said twice for the databases: the first part is the condition of the index of what waits.
_PARKED_IN = (
    "session_key IN :keys AND state IN ('pending', 'parked') "
    "AND priority >= 0 AND state = 'parked' "
    "AND state_reason = :reason"
)
# Shown, never decided on: whoever unparks locks these lanes and looks again.
PARKED_LANES = (
    "SELECT DISTINCT session_key FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "
    "AND state_reason = :reason LIMIT :limit"
)


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
