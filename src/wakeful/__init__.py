"""An always-on agent runtime: every cause of a turn is a stimulus in one durable ledger.

What most programs need is here; the rest is imported from the module where it lives, as
`docs/reference/python.md` lists it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.runtime import Runtime, ask
    from wakeful.settings.settings import Settings
    from wakeful.tools.tool import tool
    from wakeful.turn.agent import Agent
    from wakeful.turns.turns import Turn
    from wakeful.vocabulary.errors import Permanent, Transient, WakefulError
    from wakeful.vocabulary.event import Event
    from wakeful.vocabulary.stimulus import Attachment, Receipt

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Attachment",
    "Event",
    "Permanent",
    "Receipt",
    "Runtime",
    "Settings",
    "Transient",
    "Turn",
    "WakefulError",
    "ask",
    "tool",
]

# Where each name is. Loading the engine takes half a second, and a command that asks a server for
# something needs none of it.
_PLACES = {
    "Agent": "wakeful.turn.agent",
    "Attachment": "wakeful.vocabulary.stimulus",
    "Event": "wakeful.vocabulary.event",
    "Permanent": "wakeful.vocabulary.errors",
    "Receipt": "wakeful.vocabulary.stimulus",
    "Runtime": "wakeful.runtime",
    "Settings": "wakeful.settings.settings",
    "Transient": "wakeful.vocabulary.errors",
    "Turn": "wakeful.turns.turns",
    "WakefulError": "wakeful.vocabulary.errors",
    "ask": "wakeful.runtime",
    "tool": "wakeful.tools.tool",
}


if not TYPE_CHECKING:  # a checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
