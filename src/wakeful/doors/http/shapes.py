"""Shapes: what clients read; the names in here are kept."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from wakeful.access.tokens import LAST_MS
from wakeful.turns.turns import Phase, Turn, TurnState
from wakeful.views.transcripts import EntryCause
from wakeful.vocabulary.entry import Entry, EntryKind
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment, Outcome, Receipt, State, Stimulus

Shape = TypeVar("Shape", bound=Record)


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
    look_at: datetime | None = None  # when what was put off is looked at again
    unpriced: bool = False  # nobody knows what the answer will cost


class TurnEnd(Record, omit_defaults=True):
    """How a turn ended; where the session wants it, with a line that says what it used."""

    id: str
    state: TurnState
    reply: str | None
    usage_line: str | None = None


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
    look_at: datetime | None = None
    unpriced: bool = False
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
    origin: Origin
    source: str
    trust: str
    priority: str
    model: str | None  # that answered last
    state: TurnState
    phase: Phase
    stimuli: Sequence[str]
    steps: int
    tool_calls: int
    usage: UsageShape
    cost: float
    reply: str | None
    usage_line: str | None
    error: ErrorShape | None
    started_at: datetime
    ended_at: datetime | None
    attempts: int
    partial: str | None  # the words so far of the answer that is being given
    automation_run_id: str | None  # the run that it was opened for


class EntryShape(Record):
    """A line of a transcript."""

    id: str
    parent_id: str | None
    turn_id: str | None
    stimulus_id: str | None
    kind: EntryKind
    at: datetime
    origin: str | None
    source: str | None
    body: dict[str, Any]


def time_of(wall_ms: int) -> datetime:
    """Return an instant of the ledgers as a time of the calendar, in UTC; at most its last."""
    return datetime.fromtimestamp(min(wall_ms, LAST_MS) / 1000, UTC)


def time_or_none(wall_ms: int | None) -> datetime | None:
    return None if wall_ms is None else time_of(wall_ms)


def shaped(kind: type[Shape], source: object, /, **own: object) -> Shape:
    """Return a shape with what its source has by the same names, instants as times.

    What the source calls otherwise, or does not have, is given as `own`.
    """
    values: dict[str, Any] = dict(own)
    for name, is_time in _fields(kind):
        if name not in values and hasattr(source, name):
            value = getattr(source, name)
            values[name] = time_or_none(value) if is_time else value
    return kind(**values)


@cache
def _fields(kind: type[Record]) -> tuple[tuple[str, bool], ...]:
    return tuple(
        (field.name, datetime in (field.type, *get_args(field.type)))
        for field in msgspec.structs.fields(kind)
    )


def answered(receipt: Receipt, turn: Turn | None = None) -> Answered:
    return shaped(
        Answered,
        receipt,
        stimulus_id=receipt.stimulus_id or None,
        turn=None if turn is None else shaped(TurnEnd, turn),
    )


def stimulus_shape(stimulus: Stimulus) -> StimulusShape:
    return shaped(
        StimulusShape,
        stimulus,
        priority=stimulus.priority.name.lower(),
        created_at=time_of(stimulus.accepted_at),
    )


def turn_shape(
    turn: Turn, stimuli: Sequence[str], partial: str | None = None, run_id: str | None = None
) -> TurnShape:
    kind, message = turn.error_kind, turn.error or ""
    return shaped(
        TurnShape,
        turn,
        stimuli=stimuli,
        partial=partial,
        automation_run_id=run_id,
        priority=turn.priority.name.lower(),
        steps=turn.step,
        usage=UsageShape(input=turn.input_tokens, output=turn.output_tokens),
        error=None if kind is None else ErrorShape(kind=kind, message=message),
        started_at=time_of(turn.opened_at),
    )


def entry_shape(entry: Entry, cause: EntryCause | None = None) -> EntryShape:
    body = msgspec.json.decode(entry.body, type=dict[str, Any])
    origin, source = (None, None) if cause is None else (cause.origin, cause.source)
    return shaped(EntryShape, entry, body=body, origin=origin, source=source)
