"""What waited for a reason goes on once that is over: more may be spent, or a halt was lifted.

The timer that does it looks at so many lanes in a commit and carries how far it has come. Each lane
is looked at once: what may still not run is parked again by whoever claims it.
"""

from collections.abc import Sequence

import msgspec

from wakeful.broker import lane_rows, parking
from wakeful.bus.bus import Bus
from wakeful.gate import parked
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.triggers.sleeping import Sleeping
from wakeful.vocabulary import session_key as keys

_released = msgspec.json.Decoder(parked.Released)


class Releasing:
    """Fires the timers of releases."""

    def __init__(self, bus: Bus, sleeping: Sleeping) -> None:
        self._bus = bus
        self._sleeping = sleeping

    async def reconcile(self, store: Store, agent_ids: Sequence[str]) -> None:
        """Look again at what waits: the settings may give more than they did."""
        for agent_id in agent_ids:
            if await parked.count_waiting(store, agent_id):
                await store.transact(
                    lambda tx, agent_id=agent_id: timers.put(
                        tx, parked.release_timer(agent_id, tx.now)
                    )
                )

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """Let the next lanes go on, and after the last of them those who would have woken."""
        for due in dues:
            agent_id = keys.agent_of(due.timer.target)
            progress = _released.decode(due.timer.payload)
            reason, after = progress.reason, progress.after
            # What a halt parked, whoever lifts it lets go on.
            lanes = self._lanes(tx, agent_id, after) if reason == parked.BUDGET else ()
            if lanes:
                lane_rows.require(tx, lanes)
                parked.free(tx, self._bus, lanes, reason)
                timers.put(tx, parked.release_timer(agent_id, tx.now, lanes[-1]))
            elif self._sleeping.look_again(tx, agent_id, reason, parked.STEP) == parked.STEP:
                timers.put(tx, parked.release_timer(agent_id, tx.now, after, reason))

    def _lanes(self, tx: Tx, agent_id: str, after: str) -> Sequence[str]:
        return parking.parked_lanes(tx, agent_id, parked.BUDGET, after, parked.STEP)
