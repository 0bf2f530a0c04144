"""One of our entries as a line of their format."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never, cast

import msgspec

from wakeful.transcript.jsonl import images
from wakeful.transcript.jsonl.reading import LEAF, OURS, SETTINGS, STOP_REASONS, Object, read
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    EntryKind,
    NoteBody,
    ToolBody,
    TriggerBody,
    UserBody,
    attachments_of,
)
from wakeful.vocabulary.message import AssistantMessage, Block, Text, Thinking, Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment

VERSION = 3
NO_CONTENTS: Mapping[str, str] = {}

_encode = msgspec.json.Encoder().encode
_STOP_NAMES = {ours: theirs for theirs, ours in STOP_REASONS.items()} | {
    "limit": "length",
    "closure": "stop",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Links(Record):
    """The other lines that a line names."""

    name: str
    parent: str | None
    first_kept: str = ""  # of a compaction


def header_id(transcript_id: str) -> str:
    """Return what the file of a transcript that began here is called."""
    digits = hashlib.blake2b(transcript_id.encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def header(transcript_id: str, started_at: int, parent: str | None) -> bytes:
    """Return the first line of a transcript that began here, or forked off another file."""
    fields: Object = {
        "type": "session",
        "version": VERSION,
        "id": header_id(transcript_id),
        "timestamp": iso(started_at),
        "cwd": "",
    }
    return _encode(fields if parent is None else {**fields, "parentSession": parent})


def leaf(name: str, target: str | None, at: int) -> bytes:
    """Return the line that says where a conversation stands, if that is not the line before.

    It lies below what it names: so whoever does not know it goes on there, too.
    """
    return _encode(
        {"type": LEAF, "id": name, "parentId": target, "timestamp": iso(at), "targetId": target}
    )


def line(
    kind: EntryKind, at: int, body: Body, links: Links, contents: Mapping[str, str] = NO_CONTENTS
) -> bytes:
    """Return an entry as a line; what their format has no field for is added in one of ours.

    `contents` has the bytes of what is attached, in base64 and by hash.
    """
    fields = _fields(kind, at, body, links, contents)
    fields = {
        "type": fields.pop("type"),
        "id": links.name,
        "parentId": links.parent,
        "timestamp": iso(at),
        **fields,
    }
    held = (
        {images.OURS_FILES: files}
        if (files := images.files(attachments_of(body), contents))
        else {}
    )
    ours = _ours(kind, body, *read({**fields, OURS: held})) | held
    return _encode({**fields, OURS: ours} if ours else fields)


def iso(wall_ms: int) -> str:
    """Return an instant as JavaScript writes it."""
    try:
        at = _EPOCH + timedelta(milliseconds=wall_ms)
    except OverflowError:
        at = _EPOCH
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z".rjust(24, "0")


def _fields(
    kind: EntryKind, at: int, body: Body, links: Links, contents: Mapping[str, str]
) -> Object:
    match body:
        case UserBody():
            message = {"role": "user", "content": _content(body.text, body.attachments, contents)}
        case AssistantBody():
            message = _assistant(body.message)
        case ToolBody():
            message = {
                "role": "toolResult",
                "toolCallId": body.message.call_id,
                "toolName": body.message.name,
                "content": _content(body.message.text, body.message.attachments, contents),
                "isError": body.message.is_error,
            }
        case CompactionBody():
            details = {"details": body.details} if body.details else {}
            return {
                "type": "compaction",
                "summary": body.summary,
                "firstKeptEntryId": links.first_kept,
                "tokensBefore": body.tokens_before,
                **details,
            }
        case NoteBody():
            return _note(kind, body)
        case TriggerBody():
            return {
                "type": "custom_message",
                "customType": kind.value,
                "content": body.text,
                "display": True,
            }
        case _:
            assert_never(body)
    return {"type": "message", "message": {**message, "timestamp": at}}


def _assistant(message: AssistantMessage) -> Object:
    return {
        "role": "assistant",
        "content": [_block(block) for block in message.content],
        "api": message.provider,
        "provider": message.provider,
        "model": message.model,
        "usage": _usage(message.usage),
        "stopReason": _STOP_NAMES[message.stop_reason],
    }


def _block(block: Block) -> Object:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            signature = {"thinkingSignature": block.signature} if block.signature else {}
            return {"type": "thinking", "thinking": block.text, **signature}
        case _:
            return {
                "type": "toolCall",
                "id": block.id,
                "name": block.name,
                "arguments": block.arguments,
            }


def _usage(usage: Usage) -> Object:
    known = usage.cost or 0.0
    cost = int(known) if known.is_integer() else known
    return {
        "input": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.input + usage.output,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
    }


def _note(kind: EntryKind, note: NoteBody) -> Object:
    match kind:
        case EntryKind.BRANCH_SUMMARY:
            return {"type": "branch_summary", "fromId": note.topic, "summary": note.text}
        case EntryKind.MODEL_CHANGE:
            return {"type": "model_change", "provider": note.topic, "modelId": note.text}
        case EntryKind.CONTEXT_EDIT:
            return {"type": kind.value, "targetId": note.topic, "replacement": _replacement(note)}
        case EntryKind.LABEL:
            return {"type": "label", "targetId": note.topic, "label": note.text}
        case EntryKind.CUSTOM if note.topic in SETTINGS:
            return {"type": note.topic, SETTINGS[note.topic]: note.text}
        case EntryKind.CUSTOM:
            return {"type": "custom", "customType": note.topic, "data": note.text}
        case _:
            return {
                "type": "custom_message",
                "customType": note.topic,
                "content": note.text,
                "display": not note.is_hidden,
            }


def _replacement(note: NoteBody) -> Object | None:
    try:
        content = msgspec.json.decode(note.text)
    except msgspec.DecodeError:  # told in our own field
        return None
    return None if content is None else {"content": content}


def _content(
    text: str, attachments: Sequence[KeptAttachment], contents: Mapping[str, str]
) -> list[Object]:
    pictures = images.blocks(attachments, contents)
    said = [] if pictures and not text else [{"type": "text", "text": text}]
    return [*said, *pictures]


def _ours(kind: EntryKind, body: Body, their_kind: EntryKind, their_body: Body) -> Object:
    """Return what a reader of the line would not know."""
    if isinstance(body, CompactionBody) and isinstance(their_body, CompactionBody):
        # A reader learns the depth from the id of the first kept entry.
        their_body = msgspec.structs.replace(their_body, first_kept_depth=body.first_kept_depth)
    ours: Object = {} if kind == their_kind else {"kind": kind}
    more = _more(msgspec.to_builtins(body), msgspec.to_builtins(their_body))
    return {**ours, "body": more} if more else ours


def _more(whole: Any, known: Any) -> Any:
    if not isinstance(whole, dict) or not isinstance(known, dict):
        return cast("Any", whole)
    theirs = cast("Object", known)
    return {
        name: _more(value, theirs.get(name))
        for name, value in cast("Object", whole).items()
        if name not in theirs or theirs[name] != value
    }
