"""The agents of all agents, and those of sessions for which another voice was chosen."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from wakeful.models.model import Closeable, Model
from wakeful.models.unusable import Unusable
from wakeful.transcript.sessions import NOTHING_CHOSEN, Overrides
from wakeful.turn.agent import ReadyAgent
from wakeful.vocabulary.agent import Limits, ThinkingLevel
from wakeful.vocabulary.errors import InvalidInput

Voice = Callable[[str, Limits], Model]  # raises InvalidInput for a name that means no model


class ReadyAgents:
    """Which agent a turn thinks with."""

    def __init__(self, agents: Mapping[str, ReadyAgent], voice: Voice) -> None:
        self._agents = agents
        self._voice = voice
        self._lock = threading.Lock()  # guards the voices: turns are opened on the writer thread
        self._voices: dict[tuple[str, str], Model] = {}  # as many as the operator ever chose

    def get(self, agent_id: str, chosen: Overrides = NOTHING_CHOSEN) -> ReadyAgent | None:
        """Return an agent's agent, with what was chosen for a session in place of its own."""
        agent = self._agents.get(agent_id)
        if agent is None or (chosen.model is None and chosen.thinking is None):
            return agent
        model = agent.model if chosen.model is None else self._chosen(agent, chosen.model)
        thinking = None if chosen.thinking is None else ThinkingLevel(chosen.thinking)
        return agent.speaking(model, thinking or agent.config.thinking)

    async def aclose(self) -> None:
        """Close every model, also after one that could not be closed."""
        async with AsyncExitStack() as closing:
            for model in (
                *(agent.model for agent in self._agents.values()),
                *self._voices.values(),
            ):
                if isinstance(model, Closeable):
                    closing.push_async_callback(model.aclose)

    def _chosen(self, agent: ReadyAgent, name: str) -> Model:
        key = (agent.agent_id, name)
        with self._lock:
            if key not in self._voices:
                self._voices[key] = self._found(agent, name)
            return self._voices[key]

    def _found(self, agent: ReadyAgent, name: str) -> Model:
        try:
            return self._voice(name, agent.config.limits)
        except InvalidInput as error:
            return Unusable(name, error.rule)
