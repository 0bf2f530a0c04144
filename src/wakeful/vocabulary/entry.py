"""Entries: the lines of a transcript, which is also the journal of its turns."""

import hashlib
from enum import StrEnum
from typing import Any, cast

import msgspec

from wakeful.vocabulary.automation import PromptRef
from wakeful.vocabulary.message import AssistantMessage, ToolMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment

POST_TOPIC = "post"  # of a note that tells a session what came of an automation elsewhere


class EntryKind(StrEnum):
    MESSAGE = "message"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "branch_summary"
    CUSTOM_MESSAGE = "custom_message"  # enters the context
    CUSTOM = "custom"  # does not
    CONTEXT_EDIT = "context_edit"  # what a model reads in place of an earlier entry
    LABEL = "label"
    MODEL_CHANGE = "model_change"
    AUTOMATION_TRIGGER = "automation_trigger"


class UserBody(Record, tag="user", omit_defaults=True, gc=False):
    """What somebody said; external text is fenced when the context is built."""

    text: str
    source: str = ""
    is_external: bool = False
    attachments: tuple[KeptAttachment, ...] = ()  # their bytes stay as long as the entry does


class AssistantBody(Record, tag="assistant", omit_defaults=True, gc=False):
    message: AssistantMessage
    is_silent: bool = False
    is_partial: bool = False  # it answered less than the whole conversation: its size is not told


class ToolBody(Record, tag="tool", omit_defaults=True, gc=False):
    message: ToolMessage
    is_external: bool = False  # text from outside: fenced when the context is built


class NoteBody(Record, tag="note", omit_defaults=True, gc=False):
    """Text of the runtime itself: a custom message, a summary, a label, a trigger.

    An edit of the context has JSON: null leaves the entry out, else it is its content.
    """

    topic: str  # of a label or edit, the entry it is on; of a branch's summary, the leaf left
    text: str
    is_hidden: bool = False  # for the model, not for people
    refused: tuple[str, ...] = ()  # hashes of what a provider did not take: not shown again
    is_external: bool = False  # somebody outside wrote it: fenced when the context is built
    attachments: tuple[KeptAttachment, ...] = ()  # of an approved call's result


class TriggerBody(Record, tag="trigger", omit_defaults=True):
    """An automation that was due: what people and later turns read of it.

    The prompt that was made of it is kept with the record of its run.
    """

    text: str
    automation_id: str
    automation_name: str
    automation_run_id: str
    automation_prompt_ref: PromptRef
    source: str = ""
    is_external: bool = False


class CompactionBody(Record, tag="compaction"):
    """A summary that stands for everything before the first entry that is kept.

    One that undoes another gives back the view before it, which may have no summary.
    """

    summary: str
    first_kept_depth: int
    tokens_before: int
    details: dict[str, Any] = {}
    previous: str | None = None  # the compaction that counted before this one
    undoes: str | None = None  # the one whose view this takes back
    is_external: bool = False  # made from text from outside: fenced when the context is built

    @property
    def files(self) -> tuple[list[str], list[str]]:
        """Which files were read, and which changed, as far as the tools told."""
        return _texts(self.details.get("files_read")), _texts(self.details.get("files_changed"))


Body = UserBody | AssistantBody | ToolBody | NoteBody | TriggerBody | CompactionBody

encode_body = msgspec.json.Encoder().encode
decode_body = msgspec.json.Decoder(Body).decode


class Entry(Record, gc=False):
    """One line of a transcript, a node of its tree; never changed once committed."""

    id: str
    transcript_id: str
    branch: str
    depth: int
    parent_id: str | None
    turn_id: str | None
    stimulus_id: str | None
    epoch: int
    kind: EntryKind
    at: int
    body: str
    hash: str  # chained over the path from the root

    def content(self) -> Body:
        return decode_body(self.body)


def attachments_of(body: Body) -> tuple[KeptAttachment, ...]:
    """Return what came along with the words of an entry."""
    match body:
        case UserBody() | NoteBody():
            return body.attachments
        case ToolBody():
            return body.message.attachments
        case _:
            return ()


def attached(entry: Entry) -> tuple[KeptAttachment, ...]:
    """Return what came along with an entry; most have nothing, and are not decoded for it."""
    return attachments_of(entry.content()) if '"attachments":[' in entry.body else ()


def is_external(body: Body) -> bool:
    """Tell whether an entry holds text from outside."""
    return not isinstance(body, AssistantBody) and body.is_external


def chain(previous: str, entry_id: str, kind: str, body: str) -> str:
    """Return the hash of an entry, which vouches for every entry before it."""
    text = f"{previous}\n{entry_id}\n{kind}\n{body}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _texts(value: object) -> list[str]:
    """Return the texts of a list that may come from another program."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]
