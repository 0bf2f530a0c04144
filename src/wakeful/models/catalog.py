"""Find a model by its name."""

import os
from collections.abc import Mapping, Sequence

from wakeful.models.fallback import Fallback
from wakeful.models.model import Model
from wakeful.models.providers import refuse_unusable
from wakeful.models.remote import Remote
from wakeful.models.sight import stated_sight
from wakeful.models.timed import TimedModel
from wakeful.models.windows import NO_MODELS, ModelSettings, stated_window
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import Clock


def find(model: str | Model, field: str = "model") -> Model:
    """Return the model that a name means; a model that was given is returned as it is."""
    if not isinstance(model, str):
        return model
    if model == "demo":
        from wakeful.models.demo import Demo

        return Demo()
    refuse_unusable(model, os.environ, field)
    return Remote(model)


def resolve_model(
    models: Sequence[str | Model],
    limits: Limits,
    clock: Clock,
    known: Mapping[str, ModelSettings] = NO_MODELS,
) -> Model:
    """Return the model of an agent: the first, the others behind it, none waited for for ever.

    `known` is what the operator says about models, by their names.
    """
    first, *others = models
    found = [find(first), *(find(one, "fallback_models") for one in others)]
    patient = [
        TimedModel(one, limits, clock, stated_window(one.name, known), stated_sight(one, known))
        for one in found
    ]
    return Fallback(patient, clock) if others else patient[0]
