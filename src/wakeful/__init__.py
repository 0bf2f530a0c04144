"""An always-on agent runtime: every cause of a turn is a stimulus in one durable ledger."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.access.principal import Principal
    from wakeful.models.model import Model, Reply
    from wakeful.runtime import Runtime
    from wakeful.settings.settings import Settings
    from wakeful.tools.tool import tool
    from wakeful.turn.agent import Agent
    from wakeful.turns.turns import Turn
    from wakeful.vocabulary.errors import WakefulError
    from wakeful.vocabulary.event import Event
    from wakeful.vocabulary.route import Route
    from wakeful.vocabulary.stimulus import Receipt

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Event",
    "Model",
    "Principal",
    "Receipt",
    "Reply",
    "Route",
    "Runtime",
    "Settings",
    "Turn",
    "WakefulError",
    "tool",
]

# Where each name is. Loading the engine takes half a second, and a command that asks a server for
# something needs none of it.
_PLACES = {
    "Agent": "wakeful.turn.agent",
    "Event": "wakeful.vocabulary.event",
    "Model": "wakeful.models.model",
    "Principal": "wakeful.access.principal",
    "Receipt": "wakeful.vocabulary.stimulus",
    "Reply": "wakeful.models.model",
    "Route": "wakeful.vocabulary.route",
    "Runtime": "wakeful.runtime",
    "Settings": "wakeful.settings.settings",
    "Turn": "wakeful.turns.turns",
    "WakefulError": "wakeful.vocabulary.errors",
    "tool": "wakeful.tools.tool",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
