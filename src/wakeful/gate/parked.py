"""Let what was parked for one reason go on, in small steps."""

from collections.abc import Sequence

from wakeful.broker import lane_rows, stimuli
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.store.database import Store, Tx

STEP = 200  # lanes that one write touches

_LANES = (
    "SELECT DISTINCT session_key FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "
    "AND state_reason = :reason AND session_key > :after ORDER BY session_key LIMIT :limit"
)


async def release(store: Store, bus: Bus, agent_id: str, reason: str) -> int:
    """Unpark what an agent's lanes hold for a reason; return how many stimuli go on.

    Each lane is looked at once: what may still not run is parked again by whoever claims it.
    """
    released, after = 0, ""
    while True:
        rows = await store.read(_LANES, agent_id=agent_id, reason=reason, after=after, limit=STEP)
        keys = [row[0] for row in rows]
        if not keys:
            return released
        released += await store.transact(
            lambda tx, keys=keys: free(tx, bus, keys, reason),
            locks=[*map(lane_rows.lock, keys), halts.ASKING],
        )
        after = keys[-1]


def free(
    tx: Tx, bus: Bus, session_keys: Sequence[str], reason: str, becomes: str | None = None
) -> int:
    """Unpark what lanes hold for a reason; the caller holds their locks.

    `becomes` is kept with each as the reason why it waits no longer.
    """
    freed = stimuli.unpark_all(tx, session_keys, reason, becomes)
    for stimulus_id, key in freed:
        bus.publish(tx, "stimulus.pending", key, stimulus_id=stimulus_id, reason=f"{reason}-lifted")
    for key in session_keys:
        lane_rows.touch(tx, key)
    return len(freed)
