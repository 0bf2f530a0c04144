"""Which settings a session wakes by: its binding's block, or else its agent's."""

from wakeful.intake.bindings import Bindings
from wakeful.transcript.sessions import SessionPolicy
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.proactive import ProactiveRules

_OFF = ProactiveRules()


class ProactiveBlocks:
    """Resolves blocks; both sources are replaced in place when the settings change."""

    def __init__(self, agents: Agents, bindings: Bindings) -> None:
        self._agents = agents
        self._bindings = bindings

    def of(self, session: SessionPolicy) -> ProactiveRules:
        """Return the block of the binding that opened the session, whole, or the agent's."""
        binding = self._bindings.get(session.binding)
        if binding is not None and binding.proactive is not None:
            return binding.proactive
        config = self._agents.find(session.agent_id)
        return _OFF if config is None else config.proactive
