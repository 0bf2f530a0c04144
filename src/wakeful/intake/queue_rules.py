"""Which queue settings hold for a stimulus: the strongest level that names each key."""

from wakeful.intake.bindings import Bindings
from wakeful.transcript.sessions import SessionPolicy
from wakeful.vocabulary import queueing
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.queueing import QueueOverrides, QueueSettings
from wakeful.vocabulary.stimulus import Draft, Stimulus


class QueueRules:
    """Resolves queue settings."""

    def __init__(
        self,
        agents: Agents,
        bindings: Bindings,
        *,
        everywhere: QueueOverrides,
        doors: dict[str, QueueOverrides],
    ) -> None:
        self._agents = agents
        self._bindings = bindings
        self._everywhere = everywhere
        self._doors = doors

    def follow(self, everywhere: QueueOverrides, doors: dict[str, QueueOverrides]) -> None:
        """Resolve by other levels from now on."""
        self._everywhere, self._doors = everywhere, doors

    def of(self, session: SessionPolicy, what: Draft | Stimulus) -> QueueSettings:
        """Resolve inline > session > door > agent > global > default, each key on its own."""
        inline, by_door = _own_queue(what)
        door = None if what.route is None else self._doors.get(what.route.door)
        own = self._own(session)
        return queueing.resolve(inline, session.queue, door, own, self._everywhere, by_door)

    def of_session(self, session: SessionPolicy) -> QueueSettings:
        """Return what holds for the session's people, who are where they spoke last."""
        door = None if session.route is None else self._doors.get(session.route.door)
        return queueing.resolve(session.queue, door, self._own(session), self._everywhere)

    def _own(self, session: SessionPolicy) -> QueueOverrides:
        """The queue block of the binding that opened the session stands in for the agent's."""
        binding = self._bindings.get(session.binding)
        if binding is None or binding.queue is None:
            return self._agents.queue_of(session.agent_id)
        return binding.queue


def _own_queue(what: Draft | Stimulus) -> tuple[QueueOverrides | None, QueueOverrides | None]:
    """Return what a message says of its own queueing, and what its door says where nobody does.

    A stimulus that was accepted has kept its mode; the rest has had its effect.
    """
    if isinstance(what, Stimulus):
        return None if what.mode is None else QueueOverrides(mode=what.mode), None
    return what.queue, QueueOverrides(debounce_ms=what.debounce_ms) if what.debounce_ms else None
