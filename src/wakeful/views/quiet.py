"""Whether agents are quiet now, until when, and by whose word."""

from wakeful.gate import quiet
from wakeful.gate.days import Days
from wakeful.gate.quiet import QuietHours, QuietStatus
from wakeful.store.database import Store
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock


class QuietView:
    """Reads the operator's word, and looks at the clock."""

    def __init__(self, store: Store, clock: Clock, agents: Agents, days: Days) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._hours = QuietHours(agents, days)

    async def of(self, agent_id: str) -> QuietStatus:
        """Return whether an agent is quiet."""
        self._agents.get(agent_id, "agent")
        rows = await self._store.read(quiet.OF_AGENT, agent_id=agent_id)
        row = quiet.ROWS.read(rows[0]) if rows else None
        now = self._clock.now()
        return quiet.status_of(quiet.of_now(self._hours.period(agent_id, row, now), now))
