"""Whether agents are quiet now, until when, and by whose word."""

from collections.abc import Callable
from datetime import tzinfo

from wakeful.gate import quiet
from wakeful.gate.days import Days
from wakeful.gate.quiet import QuietHours, QuietPeriod, QuietStatus
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

    @property
    def zone(self) -> tzinfo | None:
        """The user's zone."""
        return self._hours.days.zone

    async def of(self, agent_id: str) -> QuietStatus:
        """Return whether an agent is quiet."""
        self._agents.get(agent_id, "agent")
        return quiet.status_of((await self._at(agent_id))(self._clock.now()))

    async def until(self, agent_id: str) -> Callable[[int], int | None]:
        """Return what tells until when an agent is quiet at an instant, as far as is known."""
        at = await self._at(agent_id)
        return lambda instant: None if (period := at(instant)) is None else period.until

    async def _at(self, agent_id: str) -> Callable[[int], QuietPeriod | None]:
        rows = await self._store.read(quiet.OF_AGENT, agent_id=agent_id)
        row = quiet.ROWS.read(rows[0]) if rows else None
        return lambda at: quiet.of_now(self._hours.period(agent_id, row, at), at)
