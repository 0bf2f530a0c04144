"""The minds of all agents, and those of sessions for which another voice was chosen."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from wakeful.models.model import Closeable, Model
from wakeful.models.unusable import Unusable
from wakeful.transcript.sessions import NOTHING_CHOSEN, Overrides
from wakeful.turn.agent import Mind
from wakeful.vocabulary.agent import Limits, ThinkingLevel
from wakeful.vocabulary.errors import InvalidInput

Voice = Callable[[str, Limits], Model]  # raises InvalidInput for a name that means no model


class Minds:
    """Which mind a turn thinks with."""

    def __init__(self, minds: Mapping[str, Mind], voice: Voice) -> None:
        self._minds = minds
        self._voice = voice
        self._lock = threading.Lock()  # guards the voices: turns are opened on the writer thread
        self._voices: dict[tuple[str, str], Model] = {}  # as many as the operator ever chose
        self._left: list[Model] = []  # of earlier minds, not closed yet

    def get(self, agent_id: str, chosen: Overrides = NOTHING_CHOSEN) -> Mind | None:
        """Return an agent's mind, with what was chosen for a session in place of its own."""
        mind = self._minds.get(agent_id)
        if mind is None or (chosen.model is None and chosen.thinking is None):
            return mind
        model = mind.model if chosen.model is None else self._chosen(mind, chosen.model)
        thinking = None if chosen.thinking is None else ThinkingLevel(chosen.thinking)
        return mind.speaking(model, thinking or mind.config.thinking)

    def follow(self, minds: Mapping[str, Mind]) -> list[Model]:
        """Think with other minds from the next claim on; return the models that are left.

        Turns that are open go on with the mind they have: `close` comes when they are over.
        """
        with self._lock:
            own = [mind.model for mind in self._minds.values() if mind.has_own_model]
            left = [*own, *self._voices.values()]
            self._minds, self._voices = minds, {}
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
        minds = (mind.model for mind in self._minds.values())
        await self.close([*minds, *self._voices.values(), *self._left])

    def _chosen(self, mind: Mind, name: str) -> Model:
        key = (mind.agent_id, name)
        with self._lock:
            if key not in self._voices:
                self._voices[key] = self._found(mind, name)
            return self._voices[key]

    def _found(self, mind: Mind, name: str) -> Model:
        try:
            return self._voice(name, mind.config.limits)
        except InvalidInput as error:
            return Unusable(name, error.rule)
