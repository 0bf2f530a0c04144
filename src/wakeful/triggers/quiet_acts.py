"""Quiet hours by the operator's word: begun, and ended before their time."""

from datetime import tzinfo

from wakeful.access import audit
from wakeful.gate.quiet import QuietStatus, status_of
from wakeful.store.database import Lock, Store, Tx
from wakeful.triggers.quieting import Quieting
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids

LONGEST_MS = 366 * 86_400_000


class QuietActs:
    """What people do about an agent's quiet hours."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, agents: Agents, quieting: Quieting
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._agents = agents
        self._quieting = quieting

    @property
    def zone(self) -> tzinfo | None:
        """The user's zone, in which a time of the day is meant."""
        return self._quieting.hours.days.zone

    async def set(self, agent_id: str, until: int | None, by: str) -> QuietStatus:
        """Keep an agent quiet until an instant, or end its quiet: what was put off goes on."""
        self.check(agent_id, until)
        return await self._store.transact(
            lambda tx: self.set_in(tx, agent_id, until, by), locks=self.locks(agent_id)
        )

    def check(self, agent_id: str, until: int | None) -> None:
        """Refuse an instant that means nothing."""
        self._agents.get(agent_id, "agent")
        now = self._clock.now()
        if until is not None and not now < until <= now + LONGEST_MS:
            raise InvalidInput("until", "must be a time within the next year")

    def locks(self, agent_id: str) -> tuple[Lock, ...]:
        """Return what whoever acts as part of another change must hold."""
        return self._quieting.locks(agent_id)

    def set_in(self, tx: Tx, agent_id: str, until: int | None, by: str) -> QuietStatus:
        audit.note(tx, self._ids, who=by, action="quiet", target=agent_id)
        if until is None:
            self._quieting.end(tx, agent_id)
        else:
            self._quieting.begin(tx, agent_id, until)
        return status_of(self._quieting.hours.now_in(tx, agent_id))
