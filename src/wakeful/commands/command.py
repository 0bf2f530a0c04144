"""A command: its name, who may use it, what it does, and the line that explains it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from wakeful.access.principal import Principal
from wakeful.bus.bus import Bus
from wakeful.intake.compactions import Compactions
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.store.database import Store
from wakeful.views.agents import AgentView
from wakeful.views.lanes import LaneView
from wakeful.views.sessions import SessionView
from wakeful.views.why import WhyView
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Draft, Receipt


class Who(StrEnum):
    """Who may use a command."""

    SENDER = "sender"  # whoever may write to the session
    OPERATOR = "operator"


class Effect(StrEnum):
    """What a command does to a turn that runs."""

    NONE = "none"
    ENDS = "ends it"
    JOINS = "joins it"
    AFTER = "waits for its end"
    HOLDS = "holds it until `/resume`"


class Caller(Record):
    """Who said it, and where."""

    session_key: SessionKey
    principal: Principal
    draft: Draft  # the message as it would have been filed

    @property
    def is_operator(self) -> bool:
        return self.principal.may(Who.OPERATOR)


class Said(Record):
    """What is answered at once."""

    text: str
    receipt: Receipt | None = None  # of a text that was filed for the agent


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What commands reach of the runtime."""

    store: Store
    bus: Bus
    ids: Ids
    clock: Clock
    intake: Intake
    compactions: Compactions
    acts: SessionActs
    sessions: SessionView
    lanes: LaneView
    agents: AgentView
    why: WhyView


Act = Callable[[Reach, Caller, str], Awaitable[Said]]


@dataclass(frozen=True, kw_only=True)
class Command:
    """One row of the table."""

    name: str
    arguments: str = ""
    help: str
    who: Who = Who.SENDER
    effect: Effect = Effect.NONE
    act: Act

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()
