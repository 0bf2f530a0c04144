"""What a line of a foreign transcript says, as one of our entries."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from wakeful.transcript.jsonl.images import is_image, with_attachments
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    EntryKind,
    NoteBody,
    ToolBody,
    TriggerBody,
    UserBody,
)
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    Usage,
)
from wakeful.vocabulary.text import DEEPEST_JSON, clean_json

OURS = "wakeful"  # the field with what their format has no field for
LARGEST_NUMBER = 2**53
LONGEST_LABEL = 200  # characters; also of the reason of a reset
DEEPEST_LINE = 2 * DEEPEST_JSON  # whoever reads an entry later has less stack than an import

# Kinds of lines that say how a conversation was set up; nobody here acts on them.
SETTINGS = {"thinking_level_change": "thinkingLevel", "session_info": "name"}

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}

# Of newer releases: kept as they are, and read by nobody.
LEAF = "leaf"  # names the entry at which the conversation stands
_UNREAD = frozenset({LEAF, "usage"})
OPAQUE = "opaque"

_NUMBER = re.compile(r"\d+(\.\d+)?")
_LEAST_MS = 100_000_000_000  # a smaller number counts seconds: this one is in 1973, or in 5138

Object = dict[str, Any]
Said = tuple[EntryKind, Body]


class Unreadable(Exception):
    """A line that cannot become an entry; says why."""


class Unknown(Unreadable):
    """A line of a kind that nobody here knows; it can be kept."""


class OutOfBounds(Unknown):
    """A line with a value that breaks a rule, which it names; it can be kept."""


def parse(line: bytes) -> Object:
    """Return the object that a line holds."""
    try:
        value = msgspec.json.decode(line)
        if b"\\u0000" in line:
            value = clean_json(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = _mended(line)
    if not isinstance(value, dict):
        raise Unreadable("not a JSON object")
    if line.count(b"{") + line.count(b"[") > DEEPEST_LINE and _is_deep(value):
        raise Unreadable(f"nested deeper than {DEEPEST_LINE}")
    return cast("Object", value)


def read(line: Object) -> Said:
    """Return the kind and the content of an entry; references are left to the tree."""
    kind = line.get("type")
    readers: dict[Any, Callable[[Object], Said]] = {
        "message": _message,
        "custom": _custom,
        "custom_message": _custom_message,
        "compaction": _compaction,
        "branch_summary": _branch_summary,
        "context_edit": _context_edit,
        "reset": _reset,
        "model_change": lambda line: (
            EntryKind.MODEL_CHANGE,
            NoteBody(topic=_word(line, "provider"), text=_word(line, "modelId")),
        ),
        "label": lambda line: (
            EntryKind.LABEL,
            NoteBody(topic=_word(line, "targetId"), text=_word(line, "label")),
        ),
        **dict.fromkeys(SETTINGS, _setting),
        **dict.fromkeys(_UNREAD, opaque),
    }
    if not isinstance(kind, str):
        raise Unreadable("a line without a kind")
    reader = readers.get(kind)
    if reader is None:
        raise Unknown(f"unknown kind {str(kind)[:40]!r}")
    said = reader(line)
    kind, body = said if OURS not in line else _with_ours(said, line[OURS])
    return kind, with_attachments(body, line)


def check_bounds(kind: EntryKind, body: Body) -> None:
    """Refuse values beyond those that anybody here counts with, or shows in one line."""
    words: dict[str, object] = {}
    numbers: dict[str, float] = {}
    match body:
        case NoteBody() if kind is EntryKind.LABEL:
            words = {"label": body.text}
        case CompactionBody():
            words = {"reason": body.details.get("reset")}
            names = ("first_kept_depth", "tokens_before")
            numbers = {f"{OURS}.body.{name}": getattr(body, name) for name in names}
        case AssistantBody():
            usage = body.message.usage
            numbers = {f"usage.{name}": getattr(usage, name) for name in usage.__struct_fields__}
        case _:
            pass
    for name, word in words.items():
        if isinstance(word, str) and len(word) > LONGEST_LABEL:
            raise OutOfBounds(f"{name} must be at most {LONGEST_LABEL} characters")
    for name, value in numbers.items():
        if not 0 <= value < LARGEST_NUMBER:
            raise OutOfBounds(f"{name} must be from 0 to {LARGEST_NUMBER - 1}")


def opaque(line: Object) -> Said:
    """Return a line that is only kept."""
    kind, role = str(line.get("type"))[:40], _object(line.get("message")).get("role")
    text = f"{kind} ({role[:40]})" if isinstance(role, str) else kind
    return EntryKind.CUSTOM, NoteBody(topic=OPAQUE, text=text)


def edited(body: Body, replacement: str) -> Body | None:
    """Return an entry with the content that an edit of the context gives it; None: without it.

    Content that cannot be read leaves it out, too: it was not to be read as it is.
    """
    try:
        content = msgspec.json.decode(replacement)
        if content is None:
            return None
        match body:
            case UserBody() | NoteBody() | TriggerBody():
                return msgspec.structs.replace(body, text=text_of(content))
            case ToolBody():
                result = msgspec.structs.replace(body.message, text=text_of(content))
                return msgspec.structs.replace(body, message=result)
            case AssistantBody():
                reply = msgspec.structs.replace(body.message, content=_blocks(content))
                return msgspec.structs.replace(body, message=reply)
            case CompactionBody():
                return body
    except (msgspec.DecodeError, Unreadable):
        return None


def time_of(line: Object) -> int | None:
    """Return when a line was written, in milliseconds; else when its message was."""
    at = _moment(line.get("timestamp"))
    return _moment(_object(line.get("message")).get("timestamp")) if at is None else at


def _moment(stamp: Any) -> int | None:
    """Return an instant in milliseconds: a time as text, or a number since 1970."""
    try:
        if isinstance(stamp, str) and not _NUMBER.fullmatch(stamp):
            at = datetime.fromisoformat(stamp)
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return round(at.timestamp() * 1000)
        if isinstance(stamp, bool) or not isinstance(stamp, str | int | float):
            return None
        number = float(stamp)
        number = number if number >= _LEAST_MS else number * 1000
        return round(number) if 0 < number < LARGEST_NUMBER else None
    except (ValueError, OverflowError):
        return None


def text_of(content: Any) -> str:
    """Return what is to be read of a content: a text, or blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Unreadable("content is neither text nor blocks")
    return "\n".join(
        str(block.get("text", "")) if block.get("type") == "text" else f"[{block.get('type')}]"
        for block in _objects(cast("list[Any]", content))
        if not is_image(block)
    )


def unread_blocks(line: Object) -> int:
    """Count the blocks of a message that are of no known kind, or cannot be kept."""
    message = _object(line.get("message"))
    content = message.get("content")
    blocks = _objects(cast("list[Any]", content)) if isinstance(content, list) else []
    if message.get("role") == "assistant":
        return sum(_block(block) is None for block in blocks)
    return sum(block.get("type") != "text" and not is_image(block) for block in blocks)


def _mended(line: bytes) -> Any:
    """Read JSON with lone surrogates, which msgspec refuses; they are replaced.

    From text: of bytes, json would guess an encoding.
    """
    try:
        text = line.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise Unreadable("not in UTF-8") from None
    try:
        return clean_json(json.loads(text, parse_constant=_refused_constant))
    except (ValueError, RecursionError):
        raise Unreadable("not JSON") from None


def _refused_constant(name: str) -> Any:
    """Refuse NaN and the infinities, which are no JSON though Python reads them."""
    raise ValueError(name)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_LINE):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    """Return the objects and lists in one."""
    values = cast("Object", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return [one for one in values if isinstance(one, dict | list)]


def _message(line: Object) -> Said:
    message = line.get("message")
    if not isinstance(message, dict):
        raise Unreadable("a message without its message")
    message = cast("Object", message)
    match message.get("role"):
        case "user":
            return EntryKind.MESSAGE, UserBody(text=text_of(message.get("content")))
        case "assistant":
            return EntryKind.MESSAGE, AssistantBody(message=_assistant(message))
        case "toolResult":
            return EntryKind.MESSAGE, ToolBody(message=_tool_result(message))
        case "custom" | "hookMessage":
            return _custom_message(message)
        case "bashExecution":
            kind = (
                EntryKind.CUSTOM if message.get("excludeFromContext") else EntryKind.CUSTOM_MESSAGE
            )
            return kind, NoteBody(topic="bash", text=_command(message))
        case "branchSummary" | "compactionSummary":
            note = NoteBody(topic=_word(message, "fromId"), text=_word(message, "summary"))
            return EntryKind.BRANCH_SUMMARY, note
        case role:
            if not isinstance(role, str):
                raise Unreadable("a message without a role")
            raise Unknown(f"unknown role {role[:40]!r}")


def _command(message: Object) -> str:
    """Return a command that somebody ran, what it printed, and how it ended."""
    text = f"$ {message.get('command', '')}\n{message.get('output', '')}"
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        text += "\n(cancelled)"
    elif isinstance(code, int) and code != 0:
        text += f"\n(exit code {code})"
    return text


def _assistant(message: Object) -> AssistantMessage:
    return AssistantMessage(
        content=_blocks(message.get("content")),
        stop_reason=STOP_REASONS.get(_word(message, "stopReason"), "stop"),
        provider=_word(message, "provider"),
        model=_word(message, "model"),
        usage=_usage(_object(message.get("usage"))),
    )


def _blocks(content: Any) -> tuple[Block, ...]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        raise Unreadable("content is neither text nor blocks")
    found = map(_block, _objects(cast("list[Any]", blocks)))
    return tuple(block for block in found if block is not None)


def _block(block: Object) -> Block | None:
    match block.get("type"):
        case "text":
            return Text(text=_word(block, "text"))
        case "thinking":
            signature = block.get("thinkingSignature")
            return Thinking(
                text=_word(block, "thinking"),
                signature=signature if isinstance(signature, str) else None,
            )
        case "toolCall":
            arguments = block.get("arguments")
            return ToolCall(
                id=_word(block, "id"),
                name=_word(block, "name"),
                arguments=_object(arguments),
            )
        case _:
            return None


def _usage(usage: Object) -> Usage:
    read_, written = _count(usage, "cacheRead"), _count(usage, "cacheWrite")
    cost = _object(usage.get("cost")).get("total")
    return Usage(
        input=_count(usage, "input") + read_ + written,  # ours counts the cached ones in
        output=_count(usage, "output"),
        cache_read=read_,
        cache_write=written,
        cost=float(cost) if isinstance(cost, int | float) and abs(cost) < LARGEST_NUMBER else 0.0,
    )


def _tool_result(message: Object) -> ToolMessage:
    return ToolMessage(
        call_id=_word(message, "toolCallId"),
        name=_word(message, "toolName"),
        text=text_of(message.get("content")),
        is_error=message.get("isError") is True,
    )


def _custom(line: Object) -> Said:
    data = line.get("data", "")
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    return EntryKind.CUSTOM, NoteBody(topic=_word(line, "customType"), text=text)


def _custom_message(line: Object) -> Said:
    note = NoteBody(
        topic=_word(line, "customType"),
        text=text_of(line.get("content")),
        is_hidden=line.get("display") is False,
    )
    return EntryKind.CUSTOM_MESSAGE, note


def _compaction(line: Object) -> Said:
    body = CompactionBody(
        summary=_word(line, "summary"),
        first_kept_depth=0,
        tokens_before=_count(line, "tokensBefore"),
        details=_object(line.get("details")),
    )
    return EntryKind.COMPACTION, body


def _branch_summary(line: Object) -> Said:
    note = NoteBody(topic=_word(line, "fromId"), text=_word(line, "summary"))
    return EntryKind.BRANCH_SUMMARY, note


def _context_edit(line: Object) -> Said:
    content = _object(line.get("replacement")).get("content")
    text = msgspec.json.encode(content).decode()
    return EntryKind.CONTEXT_EDIT, NoteBody(topic=_word(line, "targetId"), text=text)


def _reset(line: Object) -> Said:
    """A conversation that begins anew is one of which no summary is left."""
    body = CompactionBody(
        summary="",
        first_kept_depth=0,
        tokens_before=0,
        details={"reset": _word(line, "reason")},
    )
    return EntryKind.COMPACTION, body


def _setting(line: Object) -> Said:
    kind = str(line["type"])
    return EntryKind.CUSTOM, NoteBody(topic=kind, text=_word(line, SETTINGS[kind]))


def _with_ours(said: Said, ours: Any) -> Said:
    """Add what only our own lines say."""
    kind, body = said
    fields = _object(ours)
    try:
        kind = EntryKind(fields.get("kind", kind))
        merged = _merged(msgspec.to_builtins(body), _object(fields.get("body")))
        body = msgspec.convert(merged, Body)
        return (kind, body) if _agree(kind, body) else said
    except (ValueError, msgspec.ValidationError):
        return said  # somebody else's field of the same name


def _agree(kind: EntryKind, body: Body) -> bool:
    match body:
        case CompactionBody():
            return kind is EntryKind.COMPACTION
        case NoteBody():
            return kind not in (EntryKind.COMPACTION, EntryKind.MESSAGE)
        case _:
            return kind is EntryKind.MESSAGE


def _merged(base: Any, more: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    result = dict(cast("Object", base))
    for name, value in cast("Object", more).items():
        result[name] = _merged(result[name], value) if name in result else value
    return result


def _word(line: Object, field: str) -> str:
    value = line.get(field)
    return value if isinstance(value, str) else ""


def _count(line: Object, field: str) -> int:
    value = line.get(field)
    if not isinstance(value, int | float) or not 0 <= value < LARGEST_NUMBER:
        return 0
    return int(value)


def _object(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _objects(values: list[Any]) -> list[Object]:
    return [cast("Object", value) for value in values if isinstance(value, dict)]
