"""Where an attempt at a turn stands: what is committed, and what comes next."""

from collections.abc import Callable
from dataclasses import dataclass, field

from wakeful.tools.tool import ToolResult
from wakeful.turn.agent import Mind
from wakeful.turn.context import Context
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.message import AssistantMessage, ToolCall
from wakeful.vocabulary.record import Record


class Attempt(Record):
    """Who holds the lane; every write of the attempt carries it."""

    session_key: str
    turn_id: str
    owner: str
    epoch: int


class CallOutcome(Record):
    """What came of one tool call."""

    call: ToolCall
    result: ToolResult
    state: CallState


class News(Record):
    """What happened since the last commit."""

    reply: AssistantMessage | None = None
    outcomes: tuple[CallOutcome, ...] = ()
    ledger_failures: dict[str, str] = {}  # call id → what its ledger tool raised


class Ask(Record):
    """Ask the model; the question is on record."""

    step: int


class Act(Record):
    """Run these calls, all at once; their intents are on record."""

    calls: tuple[ToolCall, ...]


class Compact(Record):
    """Fold the older part of the conversation; the question for a summary is on record."""

    step: int
    purpose: Purpose


class Ended(Record):
    """The turn is over."""

    state: TurnState


class Left(Record):
    """The turn stays open without a task."""

    reason: str


class Fenced(Record):
    """Another attempt owns the lane; this one must change nothing more."""


Next = Ask | Act | Compact | Ended | Left | Fenced


@dataclass
class Journal:
    """An attempt's memory of its turn; changed only after a commit, and only to match it."""

    attempt: Attempt
    mind: Mind
    turn: Turn
    context: Context
    system: str | None = None  # what the model is told first; the same for the whole attempt
    calls: tuple[ToolCall, ...] = ()  # of the current step
    settled: frozenset[str] = frozenset()  # those of them that have results
    rests: bool = False  # a result said that the turn should end
    said: str = ""  # text beside the current calls
    finished: list[CallOutcome] = field(default_factory=list[CallOutcome])  # not committed yet
    partial: list[str] = field(default_factory=list[str])  # of the answer being written
    used_s: Callable[[], float] = lambda: 0.0  # how long this attempt has run
    is_stale: bool = False  # a commit was cut off from its answer: the rows know better

    @property
    def remaining(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call.id not in self.settled)
