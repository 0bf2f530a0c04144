"""Shapes: what clients read; the names in here are kept."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from wakeful.turns.turns import Phase, Turn, TurnState
from wakeful.vocabulary.entry import Entry, EntryKind
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment, Outcome, Receipt, State, Stimulus

DEFAULT_PAGE = 50
LARGEST_PAGE = 500

Item = TypeVar("Item")
Limit = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=1200)]


class Page(Record, Generic[Item]):
    """One page of a list; `next` is the cursor of the page that follows, or null."""

    items: Sequence[Item]
    next: str | None


class ReceiptShape(Record, omit_defaults=True):
    """What becomes of a message, as far as it is known now."""

    stimulus_id: str
    session_key: str
    outcome: Outcome
    turn_id: str | None = None
    position: int | None = None
    reason: str | None = None
    duplicate_of: str | None = None
    first_reason: str | None = None


class TurnEnd(Record):
    """How a turn ended."""

    id: str
    state: TurnState
    reply: str | None


class Answered(Record, omit_defaults=True):
    """A receipt and the turn that answered, or what a command answered at once.

    A command files no stimulus, unless it has a text for the agent.
    """

    session_key: str
    outcome: Outcome
    stimulus_id: str | None = None
    turn_id: str | None = None
    position: int | None = None
    reason: str | None = None
    duplicate_of: str | None = None
    first_reason: str | None = None
    turn: TurnEnd | None = None
    reply: str | None = None


class StimulusShape(Record):
    """A stimulus, as the ledger has it."""

    id: str
    session_key: str
    agent_id: str
    origin: Origin
    source: str
    priority: str
    trust: str
    text: str
    attachments: Sequence[KeptAttachment]
    state: State
    state_reason: str | None
    turn_id: str | None
    cause_id: str | None
    depth: int
    created_at: datetime
    settled_at: datetime | None


class UsageShape(Record):
    """Tokens that a turn used."""

    input: int
    output: int


class ErrorShape(Record):
    """What ended a turn before its time."""

    kind: str
    message: str


class TurnShape(Record):
    """A turn."""

    id: str
    session_key: str
    agent_id: str
    state: TurnState
    phase: Phase
    stimuli: Sequence[str]
    steps: int
    tool_calls: int
    usage: UsageShape
    cost: float
    reply: str | None
    error: ErrorShape | None
    started_at: datetime
    ended_at: datetime | None
    attempts: int


class EntryShape(Record):
    """A line of a transcript."""

    id: str
    parent_id: str | None
    turn_id: str | None
    stimulus_id: str | None
    kind: EntryKind
    at: datetime
    body: dict[str, Any]


def time_of(wall_ms: int) -> datetime:
    """Return an instant of the ledgers as a time of the calendar, in UTC."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC)


def time_or_none(wall_ms: int | None) -> datetime | None:
    return None if wall_ms is None else time_of(wall_ms)


def receipt_shape(receipt: Receipt) -> ReceiptShape:
    return ReceiptShape(**msgspec.structs.asdict(receipt))


def stimulus_shape(stimulus: Stimulus) -> StimulusShape:
    return StimulusShape(
        id=stimulus.id,
        session_key=stimulus.session_key,
        agent_id=stimulus.agent_id,
        origin=stimulus.origin,
        source=stimulus.source,
        priority=stimulus.priority.name.lower(),
        trust=stimulus.trust.value,
        text=stimulus.text,
        attachments=stimulus.attachments,
        state=stimulus.state,
        state_reason=stimulus.state_reason,
        turn_id=stimulus.turn_id,
        cause_id=stimulus.cause_id,
        depth=stimulus.depth,
        created_at=time_of(stimulus.accepted_at),
        settled_at=time_or_none(stimulus.settled_at),
    )


def turn_shape(turn: Turn, stimuli: Sequence[Stimulus]) -> TurnShape:
    has_error = turn.error_kind is not None
    return TurnShape(
        id=turn.id,
        session_key=turn.session_key,
        agent_id=turn.agent_id,
        state=turn.state,
        phase=turn.phase,
        stimuli=[stimulus.id for stimulus in stimuli],
        steps=turn.step,
        tool_calls=turn.tool_calls,
        usage=UsageShape(input=turn.input_tokens, output=turn.output_tokens),
        cost=turn.cost,
        reply=turn.reply,
        error=ErrorShape(kind=turn.error_kind or "", message=turn.error or "")
        if has_error
        else None,
        started_at=time_of(turn.opened_at),
        ended_at=time_or_none(turn.ended_at),
        attempts=turn.attempts,
    )


def entry_shape(entry: Entry) -> EntryShape:
    return EntryShape(
        id=entry.id,
        parent_id=entry.parent_id,
        turn_id=entry.turn_id,
        stimulus_id=entry.stimulus_id,
        kind=entry.kind,
        at=time_of(entry.at),
        body=msgspec.json.decode(entry.body, type=dict[str, Any]),
    )


def turn_end(turn: Turn) -> TurnEnd:
    return TurnEnd(id=turn.id, state=turn.state, reply=turn.reply)
