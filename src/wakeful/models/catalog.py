"""Find a model by its name."""

import os
from collections.abc import Mapping, Sequence

from wakeful.models.choosing import Chosen, choose
from wakeful.models.fallback import Fallback
from wakeful.models.formats.anthropic import AnthropicMessages
from wakeful.models.formats.dialects import DIALECTS, USUAL
from wakeful.models.formats.format import Format
from wakeful.models.formats.openai_chat import OpenAIChat
from wakeful.models.formats.openai_responses import OpenAIResponses
from wakeful.models.model import Model
from wakeful.models.providers import NONE_OWN, Providers, WireFormat
from wakeful.models.remote import Remote
from wakeful.models.sight import stated_sight
from wakeful.models.timed import TimedModel
from wakeful.models.windows import NO_MODELS, NOTHING_STATED, ModelSettings, stated_window
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import Clock, SystemClock


class Catalog:
    """Finds models by what the operator says about them and their providers."""

    def __init__(
        self, providers: Providers, known: Mapping[str, ModelSettings], clock: Clock
    ) -> None:
        self._providers = providers
        self._known = known  # what the operator says about models, by their names
        self._clock = clock

    def find(self, model: str | Model, field: str = "model") -> Model:
        return find(model, field, providers=self._providers, known=self._known, clock=self._clock)

    def resolve(self, models: Sequence[str | Model], limits: Limits) -> Model:
        """Return the model of an agent: the first, the others behind it, none for ever."""
        first, *others = models
        found = [self.find(first), *(self.find(one, "fallback_models") for one in others)]
        timed = [self._timed(one, limits) for one in found]
        return Fallback(timed, self._clock) if others else timed[0]

    def _timed(self, model: Model, limits: Limits) -> Model:
        window = stated_window(model.name, self._known)
        sight = stated_sight(model, self._known)
        stated = self._known.get(model.name, NOTHING_STATED)
        return TimedModel(model, limits, self._clock, window, sight, stated)

    def resolve_one(self, name: str, limits: Limits) -> Model:
        return self.resolve([name], limits)

    def follow(self, other: "Catalog") -> None:
        """Find models as another does from now on."""
        self._providers, self._known = other._providers, other._known


def find(
    model: str | Model,
    field: str = "model",
    *,
    providers: Providers = NONE_OWN,
    known: Mapping[str, ModelSettings] = NO_MODELS,
    clock: Clock | None = None,
) -> Model:
    """Return the model that a name means; a model that was given is returned as it is."""
    if not isinstance(model, str):
        return model
    if model == "demo":
        from wakeful.models.demo import Demo

        return Demo()
    chosen = choose(model, os.environ, providers, field)
    stated = known.get(model, NOTHING_STATED)
    if chosen.kind is None:
        return Remote(model, chosen, stated)
    # HTTP and TLS take time and memory, which whoever speaks with nobody keeps.
    from wakeful.models.direct import DirectModel, ModelEndpoint

    endpoint = ModelEndpoint(
        name=model,
        provider=chosen.system,
        model=chosen.model,
        base_url=chosen.base_url,
        key=chosen.key,
        proxy=chosen.proxy,
        headers=chosen.headers,
        stated=stated,
    )
    return DirectModel(endpoint, _format(chosen.kind, chosen), clock or SystemClock())


def _format(kind: WireFormat, chosen: Chosen) -> Format:
    match kind:
        case WireFormat.ANTHROPIC:
            return AnthropicMessages(chosen.model, chosen.system)
        case WireFormat.OPENAI_CHAT:
            dialect = DIALECTS.get(chosen.provider, USUAL)
            return OpenAIChat(chosen.model, chosen.system, dialect)
        case WireFormat.OPENAI_RESPONSES:
            return OpenAIResponses(chosen.model, chosen.system)
