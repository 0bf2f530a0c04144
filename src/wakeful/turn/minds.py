"""The minds of all agents, and those of sessions for which another voice was chosen."""

import threading
from collections.abc import Callable, Mapping
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

    def get(self, agent_id: str, chosen: Overrides = NOTHING_CHOSEN) -> Mind | None:
        """Return an agent's mind, with what was chosen for a session in place of its own."""
        mind = self._minds.get(agent_id)
        if mind is None or (chosen.model is None and chosen.thinking is None):
            return mind
        model = mind.model if chosen.model is None else self._chosen(mind, chosen.model)
        thinking = None if chosen.thinking is None else ThinkingLevel(chosen.thinking)
        return mind.speaking(model, thinking or mind.config.thinking)

    async def aclose(self) -> None:
        """Close every model, also after one that could not be closed."""
        async with AsyncExitStack() as closing:
            for model in (*(mind.model for mind in self._minds.values()), *self._voices.values()):
                if isinstance(model, Closeable):
                    closing.push_async_callback(model.aclose)

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
