"""What the lines of Claude Code say, in the blocks and fields that are read here."""

import base64
import binascii
import hashlib
from typing import Any, cast

from wakeful.vocabulary.media import IMAGES

PROVIDER = "anthropic"
NOBODY = "<synthetic>"  # the model of replies that the program itself wrote

_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "refusal": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
}

Object = dict[str, Any]


def assistant(line: Object, message: Object) -> Object:
    """Return a reply, or the piece of one that a line has."""
    content = [block for one in _blocks(message.get("content")) if (block := _replied(one))]
    fields = {
        "role": "assistant",
        "content": content,
        "api": "anthropic-messages",
        "provider": PROVIDER,
        "model": word(message, "model"),
        "usage": _usage(message.get("usage"), line.get("costUSD")),
        "stopReason": _stop_reason(line, message, content),
    }
    return {"message": fields}


def merged(reply: Object, piece: Object) -> Object:
    """Return a reply with its next piece; the last one knows what all of it used."""
    first, last = reply["message"], piece["message"]
    message = {**last, "content": [*first["content"], *last["content"]]}
    if last["stopReason"] == "stop" and first["stopReason"] == "toolUse":
        message["stopReason"] = "toolUse"
    return {**reply, "message": message}


def calls_of(reply: Object) -> list[tuple[str, str]]:
    """Return the ids and the names of a reply's calls."""
    blocks = reply["message"]["content"]
    return [(one["id"], one["name"]) for one in blocks if one.get("type") == "toolCall"]


def tool_result(result: Object, call_id: str, tool: str) -> tuple[Object, Object]:
    """Return the result of a call, and what our own field says of its files."""
    content, ours = spoken(result.get("content") or "")
    fields: Object = {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": tool,
        "content": content,
        "isError": result.get("is_error") is True,
    }
    return fields, ours


def spoken(content: Any) -> tuple[list[Object], Object]:
    """Return what was said, with its images, and what our own field says of other files."""
    said: list[Object] = []
    files: list[tuple[Object, str]] = []
    for block in _blocks(content):
        file = _file(block)
        if file is None:
            said.append(_said(block))
        else:
            files.append(file)
    if not files:
        return said, {}
    kept = [named for named, _ in files]
    return said or [{"type": "text", "text": ""}], {
        "wakeful": {
            "body": {"attachments": kept},
            "files": {named["hash"]: data for named, data in files},
        }
    }


def objects(content: Any) -> list[Object]:
    """Return the blocks of a content; text alone has none."""
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Object", one) for one in blocks if isinstance(one, dict)]


def word(line: Object, field: str) -> str:
    value = line.get(field)
    return value if isinstance(value, str) else ""


def count(usage: Object, field: str) -> int:
    value = usage.get(field)
    return value if isinstance(value, int) and value >= 0 else 0


def as_object(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _blocks(content: Any) -> list[Object]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _replied(block: Object) -> Object | None:
    match block.get("type"):
        case "text":
            return {"type": "text", "text": word(block, "text")}
        case "thinking":
            signature = word(block, "signature")
            thought = {"type": "thinking", "thinking": word(block, "thinking")}
            return {**thought, "thinkingSignature": signature} if signature else thought
        case "tool_use":
            arguments = block.get("input")
            return {
                "type": "toolCall",
                "id": word(block, "id"),
                "name": word(block, "name"),
                "arguments": arguments if isinstance(arguments, dict) else {},
            }
        case _:
            return block  # kept; no model reads it


def _said(block: Object) -> Object:
    """Return a block of what somebody, or a tool, said."""
    source = as_object(block.get("source"))
    match block.get("type"):
        case "text":
            return {"type": "text", "text": word(block, "text")}
        case "image" if source.get("type") == "base64":
            kind, data = source.get("media_type"), source.get("data")
            return {"type": "image", "data": data, "mimeType": kind}
        case "document" if source.get("type") == "text":
            return {"type": "text", "text": word(source, "data")}
        case _:
            return block


def _file(block: Object) -> tuple[Object, str] | None:
    """Return a document as an attachment: its name and measures, and its base64."""
    source = as_object(block.get("source"))
    kind, data = word(source, "media_type"), word(source, "data")
    is_file = block.get("type") == "document" and source.get("type") == "base64"
    if not is_file or not kind or kind in IMAGES:
        return None
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        return None
    name = word(block, "title") or f"document.{kind.rpartition('/')[2]}"
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "media_type": kind, "size": len(content), "hash": digest}, data


def _stop_reason(line: Object, message: Object, content: list[Object]) -> str:
    if line.get("isApiErrorMessage") is True:
        return "error"
    if word(message, "model") == NOBODY:
        return "aborted"
    has_calls = any(block.get("type") == "toolCall" for block in content)
    fields = _STOP_REASONS.get(word(message, "stop_reason"))
    return fields or ("toolUse" if has_calls else "stop")


def _usage(usage: Any, cost: Any) -> Object:
    fields = as_object(usage)
    read, written = (
        count(fields, "cache_read_input_tokens"),
        count(fields, "cache_creation_input_tokens"),
    )
    known, answered = count(fields, "input_tokens"), count(fields, "output_tokens")
    return {
        "input": known,
        "output": answered,
        "cacheRead": read,
        "cacheWrite": written,
        "totalTokens": known + answered + read + written,
        "cost": {
            "input": 0,
            "output": 0,
            "cacheRead": 0,
            "cacheWrite": 0,
            "total": cost if isinstance(cost, int | float) else 0,
        },
    }
