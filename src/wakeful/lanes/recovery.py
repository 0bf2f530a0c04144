"""Recovery at start: take back the lanes of a process that is gone."""

import logging
from collections.abc import Collection, Mapping

from wakeful.broker import lane_rows
from wakeful.intake.intake import Intake
from wakeful.lanes import poison
from wakeful.store.database import Store, Tx
from wakeful.turns import turns
from wakeful.vocabulary.agent import Limits

STEP = 500  # lanes that one write takes back

# A running suspect comes last: as long as a lane is held, it is known who is charged.
_HELD = (
    "SELECT lanes.session_key, lanes.agent_id, turns.id, turns.attempts FROM lanes "
    "LEFT JOIN turns ON turns.id = lanes.turn_id "
    "WHERE lanes.owner IS NOT NULL ORDER BY turns.attempts, lanes.session_key LIMIT :step"
)

log = logging.getLogger(__name__)


class Recovery:
    """Makes the ledgers ready for a new process; costs what was in flight, not what there is."""

    def __init__(self, store: Store, intake: Intake, limits: Mapping[str, Limits]) -> None:
        self._store = store
        self._intake = intake
        self._limits = limits  # of each agent

    @property
    def agent_ids(self) -> Collection[str]:
        return self._limits.keys()

    async def run(self) -> int:
        """Free every lane that is still owned; return the time at which the ledger ends."""
        freed = 0
        while (count := await self._store.transact(self._free_step)) > 0:
            freed += count
        if freed:
            log.warning("took back %d lanes of a process that did not stop cleanly", freed)
        for agent_id in self.agent_ids:  # a resume may have been cut, or an agent be back
            await self._intake.release(agent_id)
        rows = await self._store.read("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        return rows[0][0] if rows else 0

    def _free_step(self, tx: Tx) -> int:
        suspect_id = poison.running_suspect(tx)
        rows = tx.all(_HELD, step=STEP)
        for session_key, agent_id, turn_id, attempts in rows:
            if turn_id is not None:
                beside_suspect = suspect_id is not None and turn_id != suspect_id
                limit = self._limits.get(agent_id, Limits()).attempts
                stops = poison.stops_after(attempts, limit, beside_suspect=beside_suspect)
                if stops < attempts:
                    turns.charge(tx, turn_id, stops)
            lane_rows.release(tx, session_key, resume_at=tx.now, keeps_turn=True)
        return len(rows)
