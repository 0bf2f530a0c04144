"""The agents made ready, and how sessions want them for which another model was chosen."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from wakeful.models.model import Closeable, Model
from wakeful.models.unusable import Unusable
from wakeful.transcript.sessions import NOTHING_CHOSEN, Overrides
from wakeful.turn.agent import ReadyAgent
from wakeful.vocabulary.agent import Limits, ThinkingLevel
from wakeful.vocabulary.errors import InvalidInput

ResolveModel = Callable[[str, Limits], Model]  # raises InvalidInput for a name that means no model


class ReadyAgents:
    """Which agent a turn thinks with."""

    def __init__(self, agents: Mapping[str, ReadyAgent], resolve_model: ResolveModel) -> None:
        self._agents = agents
        self._resolve_model = resolve_model
        self._lock = threading.Lock()  # guards the models: turns are opened on the writer thread
        self._chosen_models: dict[tuple[str, str], Model] = {}  # as many as the operator ever chose
        self._left: list[Model] = []  # of earlier agents, not closed yet

    def get(self, agent_id: str, chosen: Overrides = NOTHING_CHOSEN) -> ReadyAgent | None:
        """Return an agent, with what was chosen for a session in place of its own."""
        agent = self._agents.get(agent_id)
        if agent is None or (chosen.model is None and chosen.thinking is None):
            return agent
        model = agent.model if chosen.model is None else self._chosen(agent, chosen.model)
        thinking = None if chosen.thinking is None else ThinkingLevel(chosen.thinking)
        return agent.speaking(model, thinking or agent.config.thinking)

    def workspace_of(self, agent_id: str) -> Path | None:
        agent = self._agents.get(agent_id)
        return None if agent is None else agent.workspace

    def follow(
        self, agents: Mapping[str, ReadyAgent], resolve_model: ResolveModel | None = None
    ) -> list[Model]:
        """Run turns with other agents from the next claim on; return the models that are left.

        Turns that are open go on with the agent they have: `close` comes when they are over.
        """
        with self._lock:
            own = [agent.model for agent in self._agents.values() if agent.has_own_model]
            left = [*own, *self._chosen_models.values()]
            self._agents, self._chosen_models = agents, {}
            self._resolve_model = resolve_model or self._resolve_model
        self._left += left
        return left

    async def close(self, models: Sequence[Model]) -> None:
        """Close models that nobody asks any more, also after one that could not be closed."""
        closed = {id(model) for model in models}
        self._left = [model for model in self._left if id(model) not in closed]
        async with AsyncExitStack() as closing:
            for model in models:
                if isinstance(model, Closeable):
                    closing.push_async_callback(model.aclose)

    async def aclose(self) -> None:
        """Close every model."""
        own = (agent.model for agent in self._agents.values())
        await self.close([*own, *self._chosen_models.values(), *self._left])

    def _chosen(self, agent: ReadyAgent, name: str) -> Model:
        key = (agent.agent_id, name)
        with self._lock:
            if key not in self._chosen_models:
                self._chosen_models[key] = self._found(agent, name)
            return self._chosen_models[key]

    def _found(self, agent: ReadyAgent, name: str) -> Model:
        try:
            return self._resolve_model(name, agent.config.limits)
        except InvalidInput as error:
            return Unusable(name, error.rule)
