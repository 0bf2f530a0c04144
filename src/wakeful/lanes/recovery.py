"""Recovery at start: take back the lanes of a process that is gone."""

import logging

from wakeful.broker import lanes
from wakeful.intake.intake import Intake
from wakeful.store.database import Store, Tx

STEP = 500  # lanes that one write takes back
SUSPECT_ATTEMPTS = 2  # a turn tried this often may be what stopped the process

log = logging.getLogger(__name__)


class Recovery:
    """Makes the ledgers ready for a new process; costs what was in flight, not what there is."""

    def __init__(self, store: Store, intake: Intake, agent_ids: list[str]) -> None:
        self._store = store
        self._intake = intake
        self._agent_ids = agent_ids

    async def run(self) -> tuple[list[str], int]:
        """Free every lane that is still owned.

        Return those whose turns are suspect, and the time at which the ledger ends.
        """
        suspects: list[str] = []
        freed = 0
        while True:
            keys, suspect = await self._store.write(self._free_step)
            suspects += suspect
            freed += len(keys)
            if len(keys) < STEP:
                break
        if freed:
            log.warning("took back %d lanes of a process that did not stop cleanly", freed)
        for agent_id in self._agent_ids:  # a resume may have been cut, or an agent be back
            await self._intake.release(agent_id)
        rows = await self._store.read("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        return suspects, rows[0][0] if rows else 0

    def _free_step(self, tx: Tx) -> tuple[list[str], list[str]]:
        rows = tx.all(
            "SELECT lanes.session_key, COALESCE(turns.attempts, 0) FROM lanes "
            "LEFT JOIN turns ON turns.id = lanes.turn_id "
            "WHERE lanes.owner IS NOT NULL LIMIT :step",
            step=STEP,
        )
        keys = [row[0] for row in rows]
        for key in keys:
            lanes.release(tx, key, resume_at=tx.now, keeps_turn=True)
        return keys, [row[0] for row in rows if row[1] >= SUSPECT_ATTEMPTS]
