"""A command: its name, who may use it, what it does, and the line that explains it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from wakeful.access.principal import Principal
from wakeful.services import Services
from wakeful.store.database import Lock, Tx
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Draft, Receipt


class Who(StrEnum):
    """Who may use a command."""

    SENDER = "sender"  # whoever may write to the session
    OPERATOR = "operator"


class CommandEffect(StrEnum):
    """What a command does to a turn that runs."""

    NONE = "none"
    ENDS = "ends it"
    JOINS = "joins it"
    AFTER = "waits for its end"
    HOLDS = "holds it until `/resume`"


class Caller(Record):
    """Who said it, and where."""

    principal: Principal
    draft: Draft  # the message as it would have been filed

    @property
    def session_key(self) -> SessionKey:
        return SessionKey(self.draft.session_key)


class Said(Record):
    """What is answered at once."""

    text: str
    receipt: Receipt | None = None  # of a text that was filed for the agent


@dataclass(frozen=True, kw_only=True)
class Deed:
    """What a command does: all of it in the commit that takes its key and keeps its answer.

    So a kill leaves either nothing, and whoever repeats the command has it done, or the deed and
    its answer, which the repeat gets. `afterwards` may be cut short: what it does is done again
    at the next start, whoever asks for it.
    """

    act: Callable[[Tx], Said]
    locks: tuple[Lock, ...] = ()  # beside that of the session's lane
    afterwards: Callable[[], Awaitable[object]] | None = None


def saying(text: str) -> Deed:
    """Return the deed of a command that only looks: its answer."""
    return Deed(act=lambda _tx: Said(text=text))


Plan = Callable[[Services, Caller, str], Awaitable[Deed]]  # may look, and changes nothing


@dataclass(frozen=True, kw_only=True)
class Command:
    """One row of the table."""

    name: str
    arguments: str = ""
    help: str
    who: Who = Who.SENDER
    effect: CommandEffect = CommandEffect.NONE
    plan: Plan

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()

    def is_for(self, principal: Principal) -> bool:
        return self.who is Who.SENDER or principal.is_operator
