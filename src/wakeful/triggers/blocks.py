"""Which settings a session wakes by: its binding's block, or else its agent's."""

from wakeful.intake.bindings import Bindings
from wakeful.transcript.sessions import SessionPolicy
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import CACHE_EDGES_MS, Agents
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

    def cache_edges_of(self, session: SessionPolicy) -> tuple[int, int]:
        """Return between which lengths no pause of a session ends."""
        config = self._agents.find(session.agent_id)
        return CACHE_EDGES_MS if config is None else config.cache_edges_ms

    def is_any_enabled(self) -> bool:
        """Tell whether anybody ticks: else no turn has to find out whether its session does."""
        bound = any(one.proactive is not None and one.proactive.enabled for one in self._bindings)
        return bound or any(
            (config := self._agents.find(agent_id)) is not None and config.proactive.enabled
            for agent_id in self._agents.ids()
        )

    def ticking(self, key: str, binding_id: str | None) -> ProactiveRules | None:
        """Return the block by which a session ticks, or None: it does not.

        An agent's own block is for its main session, a binding's for the sessions it opened.
        """
        binding = self._bindings.get(binding_id)
        rules = None if binding is None else binding.proactive
        agent_id = keys.agent_of(key)
        if rules is None and key == keys.main(agent_id):
            config = self._agents.find(agent_id)
            rules = None if config is None else config.proactive
        return rules if rules is not None and rules.enabled else None
