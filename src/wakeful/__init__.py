"""An always-on agent runtime: every cause of a turn is a stimulus in one durable ledger."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.access.principal import Principal
    from wakeful.doors.http.door import HttpDoor
    from wakeful.doors.http.server import HttpOptions
    from wakeful.intake.bindings import Contact
    from wakeful.models.model import Delta, Model, Reply, Request
    from wakeful.outbox.outbox import Delivery, ReadyDelivery
    from wakeful.runtime import Runtime, ask
    from wakeful.settings.settings import Settings
    from wakeful.tools.mcp.options import McpServerSettings, RemoteEffect, RemoteTool
    from wakeful.tools.tool import LedgerContext, ToolContext, ToolResult, tool
    from wakeful.turn.agent import Agent
    from wakeful.turns.turns import Turn
    from wakeful.vocabulary.errors import Permanent, Transient, WakefulError
    from wakeful.vocabulary.event import Event
    from wakeful.vocabulary.message import Text
    from wakeful.vocabulary.route import Route
    from wakeful.vocabulary.stimulus import Attachment, Receipt

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Attachment",
    "Contact",
    "Delivery",
    "Delta",
    "Event",
    "HttpDoor",
    "HttpOptions",
    "LedgerContext",
    "McpServerSettings",
    "Model",
    "Permanent",
    "Principal",
    "ReadyDelivery",
    "Receipt",
    "RemoteEffect",
    "RemoteTool",
    "Reply",
    "Request",
    "Route",
    "Runtime",
    "Settings",
    "Text",
    "ToolContext",
    "ToolResult",
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
    "Contact": "wakeful.intake.bindings",
    "Delivery": "wakeful.outbox.outbox",
    "Delta": "wakeful.models.model",
    "Event": "wakeful.vocabulary.event",
    "HttpDoor": "wakeful.doors.http.door",
    "HttpOptions": "wakeful.doors.http.server",
    "LedgerContext": "wakeful.tools.tool",
    "McpServerSettings": "wakeful.tools.mcp.options",
    "Model": "wakeful.models.model",
    "Permanent": "wakeful.vocabulary.errors",
    "Principal": "wakeful.access.principal",
    "ReadyDelivery": "wakeful.outbox.outbox",
    "Receipt": "wakeful.vocabulary.stimulus",
    "RemoteEffect": "wakeful.tools.mcp.options",
    "RemoteTool": "wakeful.tools.mcp.options",
    "Reply": "wakeful.models.model",
    "Request": "wakeful.models.model",
    "Route": "wakeful.vocabulary.route",
    "Runtime": "wakeful.runtime",
    "Settings": "wakeful.settings.settings",
    "Text": "wakeful.vocabulary.message",
    "ToolContext": "wakeful.tools.tool",
    "ToolResult": "wakeful.tools.tool",
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
