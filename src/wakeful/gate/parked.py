"""Let what was parked for one reason go on, in small steps."""

from collections.abc import Sequence

import msgspec

from wakeful.broker import lane_rows, parking
from wakeful.bus.bus import Bus
from wakeful.sleeps import sleeps
from wakeful.store.database import Store, Tx
from wakeful.timers.timers import Timer
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.record import Record

STEP = 200  # lanes that one write touches
BUDGET = "budget"  # why something waits for money or turns
HALTED = "halted"  # why nothing of an agent goes on
RELEASE_TIMER = "release"  # the kind of the timer that lets go on what waited

WAITING = (
    "SELECT COUNT(*) FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "  # noqa: S608
    f"AND state_reason = :reason UNION ALL {sleeps.COUNT_REFUSED}"
)


class Released(Record):
    """What the timer of a release carries: what is over, and the last lane that was looked at."""

    after: str = ""
    reason: str = BUDGET


def release_timer(agent_id: str, now: int, after: str = "", reason: str = BUDGET) -> Timer:
    """Return the timer that lets go on, from now on, what an agent has waiting for one reason.

    It is set in the commit that ends the reason: whatever is killed then, nothing is forgotten.
    """
    return Timer(
        id=f"{RELEASE_TIMER} {reason} {agent_id}",
        due_at=now,
        kind=RELEASE_TIMER,
        target=keys.activity(agent_id),
        payload=msgspec.json.encode(Released(after=after, reason=reason)).decode(),
        owner_kind="agent",
    )


async def count_waiting(store: Store, agent_id: str) -> int:
    """Return how much of an agent's waits for money or turns: stimuli, and wakes of sleepers."""
    rows = await store.read(WAITING, agent_id=agent_id, reason=BUDGET)
    return sum(count for (count,) in rows)


def count_waiting_in(tx: Tx, agent_id: str) -> int:
    """Return the same, as part of a change."""
    return sum(count for (count,) in tx.all(WAITING, agent_id=agent_id, reason=BUDGET))


def free(
    tx: Tx, bus: Bus, session_keys: Sequence[str], reason: str, becomes: str | None = None
) -> int:
    """Unpark what lanes hold for a reason; the caller holds their locks.

    `becomes` is kept with each as the reason why it waits no longer.
    """
    freed = parking.unpark_all(tx, session_keys, reason, becomes)
    for stimulus_id, key in freed:
        bus.publish(tx, "stimulus.pending", key, stimulus_id=stimulus_id, reason=f"{reason}-lifted")
    for key in session_keys:
        lane_rows.touch(tx, key)
    return len(freed)
