"""Find a model by its name."""

from wakeful.models.model import Model
from wakeful.vocabulary.errors import InvalidInput


def find(model: str | Model) -> Model:
    """Return the model that a name means; a model that was given is returned as it is."""
    if not isinstance(model, str):
        return model
    if model == "demo":
        from wakeful.models.demo import Demo

        return Demo()
    raise InvalidInput("model", f"must be 'demo' or a Model object, not {model[:80]!r}")
