"""An attempt at a turn: what is committed of it, and what comes next."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from wakeful.gate.money import Grant
from wakeful.tools.tool import ToolResult
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.context import Context
from wakeful.turn.showing import Showing
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.automation import AutomationRun
from wakeful.vocabulary.message import AssistantMessage, ToolCall
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import ReadyAttachment, Trust


class LaneClaim(Record):
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


class StepResult(Record):
    """What happened since the last commit."""

    reply: AssistantMessage | None = None
    outcomes: tuple[CallOutcome, ...] = ()


class Ask(Record):
    """Ask the model; the question is on record."""

    step: int
    grant: Grant


class Act(Record):
    """Run these calls, all at once; their intents are on record."""

    calls: tuple[ToolCall, ...]


class Compact(Record):
    """Compact the older part of the conversation; the question for a summary is on record."""

    step: int
    purpose: Purpose
    grant: Grant


class Ended(Record):
    """The turn is over."""

    state: TurnState


class Left(Record):
    """The turn stays open without a task."""

    reason: str


class Fenced(Record):
    """Another attempt owns the lane; this one must change nothing more."""


Next = Ask | Act | Compact | Ended | Left | Fenced


class StepState:
    """The calls of one reply and what has come of them, passed whole from commit to commit.

    A call that was approved stands alone, without a reply, before the first question.
    """

    def __init__(
        self,
        calls: tuple[ToolCall, ...] = (),
        settled: Iterable[str] = (),
        said: str = "",
        thought: str = "",
        approved: int | None = None,
    ) -> None:
        self.calls = calls
        self.approved = approved  # the number of the approval whose call this is; no reply has it
        self.said = said  # text beside the calls
        self.thought = thought  # before it
        self.rests = False  # a result said that the turn should end
        self.positions = {call.id: position for position, call in enumerate(calls)}
        self._open = {call.id: call for call in calls}
        for call_id in settled:
            self._open.pop(call_id, None)

    @property
    def open_calls(self) -> Collection[ToolCall]:
        """The calls without a result, in their order; it changes as they get theirs."""
        return self._open.values()

    def is_open(self, call_id: str) -> bool:
        return call_id in self._open

    def settle(self, call_id: str, *, ends_turn: bool) -> None:
        """Note that a call has its result."""
        self._open.pop(call_id, None)
        self.rests = self.rests or ends_turn

    def copy(self) -> "StepState":
        """Return one that a commit may change: it counts once that is on disk."""
        copied = StepState((), said=self.said, thought=self.thought, approved=self.approved)
        copied.calls, copied.positions = self.calls, self.positions
        copied.rests, copied._open = self.rests, dict(self._open)
        return copied


@dataclass
class Asking:
    """What is known of a question while it is asked; it tells what a broken answer cost."""

    grant: Grant | None = None  # None: nothing was asked
    is_free: bool = False  # the model refused it
    seen: int = 0  # characters of the answer so far
    lost: float = 0.0  # dollars, for answers of other models that broke off before


@dataclass
class TurnAttempt:
    """What an attempt knows of its turn; changed only after a commit, and only to match it."""

    claim: LaneClaim
    agent: ReadyAgent
    turn: Turn
    context: Context
    run: AutomationRun | None = None  # that the turn is
    # What the model is told first; the same for the whole attempt, or until the turn's trust sinks.
    system: tuple[Trust, str] | None = None
    can_remember: bool = False  # memories could be written down: looked up with the files
    showing: Showing | None = None  # of what is attached, once something is
    step: StepState = field(default_factory=StepState)
    finished: list[CallOutcome] = field(default_factory=list[CallOutcome])  # not committed yet
    # What was read for ledger tools before their commit, by call id.
    prepared: dict[str, tuple[ReadyAttachment, ...]] = field(
        default_factory=dict[str, tuple[ReadyAttachment, ...]]
    )
    partial: list[str] = field(default_factory=list[str])  # of the answer being written
    asking: Asking = field(default_factory=Asking)
    used_s: Callable[[], float] = lambda: 0.0  # how long this attempt has run
    refused: int | None = None  # tokens of the smallest question for a summary that did not fit
    is_stale: bool = False  # a commit was cut off from its answer: the rows know better
