"""Context: what the model sees, computed from entries and grown by appending."""

from collections.abc import Iterable, Sequence

from wakeful.prompts.fence import fenced
from wakeful.turn.mend import mended
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    Entry,
    Kind,
    NoteBody,
    ToolBody,
    UserBody,
)
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage, UserMessage

_SPOKEN = frozenset(
    {Kind.MESSAGE, Kind.CUSTOM_MESSAGE, Kind.AUTOMATION_TRIGGER, Kind.BRANCH_SUMMARY}
)


class Context:
    """The decoded messages of one branch up to a leaf.

    Extending it entry by entry gives the same messages as building it anew: what was sent to a
    model can be rebuilt from the rows.
    """

    def __init__(self, branch: str) -> None:
        self.branch = branch
        self.depth = -1
        self.hash = ""
        self.messages: list[Message] = []
        self.size = 0  # characters of the entries, for whoever keeps it
        self._last_user_turn: str | None = None

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.depth, self.hash = entry.depth, entry.hash
            self.size += len(entry.body)
            if entry.kind in _SPOKEN:
                self._add(entry, entry.content())

    def _add(self, entry: Entry, body: Body) -> None:
        message = _message(entry, body)
        if message is None:
            return
        if not isinstance(message, UserMessage):
            self._last_user_turn = None
        elif entry.turn_id is not None and entry.turn_id == self._last_user_turn:
            # What opens or joins a turn together is one prompt.
            last = self.messages.pop()
            assert isinstance(last, UserMessage)
            message = UserMessage(text=f"{last.text}\n\n{message.text}")
        else:
            self._last_user_turn = entry.turn_id
        self.messages.append(message)


def build(branch: str, entries: Sequence[Entry], open_turn_id: str | None = None) -> Context:
    """Return the context of a path; only its last compaction counts.

    Calls that the open turn has yet to run are left open; any other call without a result gets
    one, and a result without a call is dropped.
    """
    context = Context(branch)
    summary, first_kept = _last_compaction(entries)
    if summary is not None:
        context.messages.append(UserMessage(text=summary))
    context.extend(entry for entry in entries if entry.depth >= first_kept)
    if entries:
        context.depth, context.hash = entries[-1].depth, entries[-1].hash
    context.messages = mended(context.messages, is_open=_ends_in_turn(entries, open_turn_id))
    return context


def _last_compaction(entries: Sequence[Entry]) -> tuple[str | None, int]:
    for entry in reversed(entries):
        if entry.kind is Kind.COMPACTION:
            body = entry.content()
            assert isinstance(body, CompactionBody)
            return body.summary, body.first_kept_depth
    return None, 0


def _ends_in_turn(entries: Sequence[Entry], turn_id: str | None) -> bool:
    return turn_id is not None and bool(entries) and entries[-1].turn_id == turn_id


def _message(entry: Entry, body: Body) -> UserMessage | AssistantMessage | ToolMessage | None:
    match body:
        case UserBody(is_external=True):
            return UserMessage(text=fenced(body.text, source=body.source, entry_id=entry.id))
        case UserBody() | NoteBody():
            return UserMessage(text=body.text)
        case AssistantBody() | ToolBody():
            return body.message
        case CompactionBody():
            return None
