"""An always-on agent runtime: every cause of a turn is a stimulus in one durable ledger."""

from wakeful.access.principal import Principal
from wakeful.intake.bindings import Contact
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
    "Contact",
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
