"""Context: what the model sees, computed from entries and grown by appending."""

from collections.abc import Iterable, Sequence

from msgspec import structs

from wakeful.prompts import notes
from wakeful.prompts.compaction import introduced
from wakeful.prompts.fence import fenced
from wakeful.transcript.jsonl.reading import edited
from wakeful.turn.mend import mended
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    Entry,
    EntryKind,
    NoteBody,
    ToolBody,
    TriggerBody,
    UserBody,
    encode_body,
)
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    StopReason,
    ToolMessage,
    UserMessage,
)
from wakeful.vocabulary.tokens import counted, tokens_of

SPOKEN = frozenset(  # kinds of entries that a model reads
    {
        EntryKind.MESSAGE,
        EntryKind.CUSTOM_MESSAGE,
        EntryKind.AUTOMATION_TRIGGER,
        EntryKind.BRANCH_SUMMARY,
    }
)

UNSAID = "unsaid"  # the topic of the entry that takes back what its turn wrote
OF_OUTSIDERS = "the summary of a conversation in which others spoke"


# A reply that ended so is no reply: it broke off, or the runtime itself said why there is none.
_FAILED: frozenset[StopReason] = frozenset({"aborted", "error", "limit", "closure"})
_UNREAD: frozenset[StopReason] = frozenset({"aborted", "closure"})  # no model need know of it


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
        self.tokens = 0  # as the model counted them last, and an estimate of what follows
        self.is_counted = False  # by a model: the count has its instructions and tools in it
        self.refused: frozenset[str] = frozenset()  # hashes that the provider did not take
        self._counted_from = 0  # what was counted before this depth was another context
        self.is_stale = False  # something in it has been taken back since
        self._last_user_turn: str | None = None
        self._opening: tuple[str, UserMessage] | None = None  # of the newest turn

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.depth, self.hash = entry.depth, entry.hash
            self.size += len(entry.body)
            if entry.kind in SPOKEN:
                self._add(entry, entry.content())
            elif unsaid_turn(entry) is not None:
                self.is_stale = True

    def begin(self, compacted: Entry, body: CompactionBody) -> None:
        """Begin with the summary of what is no longer shown."""
        self.count_from(compacted.depth)
        if body.summary:
            read, changed = body.files
            text = introduced(body.summary, read, changed)
            if body.is_external:
                text = fenced(text, source=OF_OUTSIDERS, entry_id=compacted.id)
            self.messages.append(UserMessage(text=text))
            self.tokens = tokens_of(self.messages[0])

    def count_from(self, depth: int) -> None:
        """Leave aside what models counted before a depth: that was another context."""
        self._counted_from = depth

    def behind(self, compacted: Entry, body: CompactionBody) -> "Context":
        """Return what `rest_of` gave with the summary before it; this one stays as it is."""
        context = Context(self.branch)
        context.begin(compacted, body)
        context.messages += self.messages
        context.tokens += self.tokens
        context.size = self.size + len(compacted.body)
        context.refused = self.refused
        context.depth, context.hash = compacted.depth, compacted.hash
        context._last_user_turn = self._last_user_turn
        context._opening = self._opening
        return context

    def _add(self, entry: Entry, body: Body) -> None:
        message = message_of(entry, body)
        if message is None:
            return
        if isinstance(body, NoteBody) and body.refused:
            self.refused |= frozenset(body.refused)
        is_whole = not isinstance(body, AssistantBody) or not body.is_partial
        counts = counted(message) if is_whole and entry.depth >= self._counted_from else None
        self.tokens = self.tokens + tokens_of(message) if counts is None else counts
        self.is_counted = self.is_counted or counts is not None
        if not isinstance(message, UserMessage):
            self._last_user_turn = None
        elif entry.turn_id is not None and entry.turn_id == self._last_user_turn:
            # What opens or joins a turn together is one prompt.
            last = self.messages.pop()
            assert isinstance(last, UserMessage)
            message = UserMessage(
                text=f"{last.text}\n\n{message.text}",
                attachments=last.attachments + message.attachments,
            )
            if self._opening is not None and self._opening[1] is last:
                self._opening = (entry.turn_id, message)
        else:
            self._last_user_turn = entry.turn_id
            if entry.turn_id is not None and entry.turn_id != self._opening_turn:
                self._opening = (entry.turn_id, message)
        self.messages.append(message)

    @property
    def _opening_turn(self) -> str | None:
        return None if self._opening is None else self._opening[0]

    def opening_of(self, turn_id: str) -> UserMessage | None:
        """Return the message that the newest turn began with, or what is still shown of it."""
        if self._opening is None or self._opening[0] != turn_id:
            return None
        return self._opening[1]


def build(branch: str, entries: Sequence[Entry], open_turn_id: str | None = None) -> Context:
    """Return the context of a path; only its last compaction counts.

    Calls that the open turn has yet to run are left open; any other call without a result gets
    one, and a result without a call is dropped.
    """
    context = Context(branch)
    first_kept = 0
    found = last_compaction(entries)
    if found is not None:
        context.begin(*found)
        first_kept = found[1].first_kept_depth
    context.extend(entry for entry in as_edited(entries) if entry.depth >= first_kept)
    context.is_stale = False
    if entries:
        context.depth, context.hash = entries[-1].depth, entries[-1].hash
    context.messages = mended(context.messages, is_open=_may_wait(entries, open_turn_id))
    return context


def rest_of(
    branch: str, entries: Sequence[Entry], first_kept: int, open_turn_id: str | None
) -> Context:
    """Return what stays of a path when all before a depth becomes a summary that is yet to come."""
    context = Context(branch)
    context.count_from(entries[-1].depth + 1)
    kept = [entry for entry in entries if entry.depth >= first_kept]
    context.extend(as_edited(kept))
    context.is_stale = False
    context.depth, context.hash = entries[-1].depth, entries[-1].hash
    context.messages = mended(context.messages, is_open=_may_wait(kept, open_turn_id))
    return context


def as_edited(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return a path as it is read: an edit of the context changes or removes an earlier entry.

    Only files of other programs bring edits; the last one of each entry counts. A heartbeat of
    which nobody was told anything leaves no trace.
    """
    unsaid = {turn_id for entry in entries if (turn_id := unsaid_turn(entry)) is not None}
    if unsaid:
        entries = [entry for entry in entries if entry.turn_id not in unsaid]
    if not any(entry.kind is EntryKind.CONTEXT_EDIT for entry in entries):
        return entries
    edits = {
        note.topic: note.text
        for entry in entries
        if entry.kind is EntryKind.CONTEXT_EDIT and isinstance(note := entry.content(), NoteBody)
    }
    found: list[Entry] = []
    for entry in entries:
        if entry.id not in edits:
            found.append(entry)
        elif (body := edited(entry.content(), edits[entry.id])) is not None:
            found.append(structs.replace(entry, body=encode_body(body).decode()))
    return found


def unsaid_turn(entry: Entry) -> str | None:
    """Return the turn of which an entry says that nobody was told anything."""
    if entry.kind is not EntryKind.CUSTOM or UNSAID not in entry.body:
        return None
    body = entry.content()
    is_it = isinstance(body, NoteBody) and body.topic == UNSAID
    return entry.turn_id if is_it else None


def in_view(entries: Sequence[Entry], view: View, turn_id: str | None) -> Sequence[Entry]:
    """Return the entries of a path that a turn's model sees."""
    if view is View.LIGHT:
        return [entry for entry in entries if entry.turn_id == turn_id]
    return entries


def last_compaction(entries: Sequence[Entry]) -> tuple[Entry, CompactionBody] | None:
    """Return the one compaction that counts."""
    for entry in reversed(entries):
        if entry.kind is EntryKind.COMPACTION:
            body = entry.content()
            assert isinstance(body, CompactionBody)
            return entry, body
    return None


def _may_wait(entries: Sequence[Entry], turn_id: str | None) -> bool:
    """Tell whether the last reply on a path is the open turn's, and nobody spoke since."""
    if turn_id is None:
        return False
    # Others may have noted something meanwhile that no model reads.
    for entry in reversed(entries):
        if entry.kind not in SPOKEN:
            continue
        if entry.turn_id != turn_id:
            return False  # the calls before it are an earlier turn's, which runs no more of them
        if _is_reply(entry.content()):
            return True
    return False


def _is_reply(body: Body) -> bool:
    return isinstance(body, AssistantBody) and body.message.stop_reason not in _FAILED


def message_of(entry: Entry, body: Body) -> Message | None:
    """Return an entry as a model reads it, or None if it does not."""
    match body:
        case UserBody():
            said = (body.text + notes.attached(body.attachments)).removeprefix("\n")
            if body.is_external:
                said = fenced(said, source=_sender(body.source), entry_id=entry.id)
            return UserMessage(text=said, attachments=body.attachments)
        case NoteBody():
            noted = body.text + notes.attached(body.attachments)
            if body.is_external:
                noted = fenced(noted, source=entry.kind, entry_id=entry.id)
            return UserMessage(text=noted, attachments=body.attachments)
        case TriggerBody():
            said = body.text
            if body.is_external:
                said = fenced(said, source=_sender(body.source), entry_id=entry.id)
            return UserMessage(text=said)
        case ToolBody():
            return _result(entry, body)
        case AssistantBody():
            return _reply(body.message)
        case CompactionBody():
            return None


def _reply(message: AssistantMessage) -> Message | None:
    """Return a reply; where the runtime spoke instead, that it did, and never its words as the
    model's own.
    """
    if message.stop_reason not in _FAILED:
        return message
    return None if message.stop_reason in _UNREAD else UserMessage(text=notes.FAILED)


def _result(entry: Entry, body: ToolBody) -> ToolMessage:
    message = body.message
    if not body.is_external and not message.attachments:
        return message
    said = message.text + notes.attached(message.attachments)
    if body.is_external:
        said = fenced(said, source=message.name, entry_id=entry.id)
    return structs.replace(message, text=said)


def _sender(source: str) -> str:
    """Return who is named outside a fence: not by a name that somebody outside has made up."""
    return "an automation" if source.startswith("cron:") else source
