"""Plain chats, line by line, as lines of the format that is read here.

Each line is a message with a role and a content, as models are given them and as nanobot keeps its
sessions; a first line may tell of the whole. They have no ids and no branches.
"""

import json
import re
from typing import Any, cast

from wakeful.transcript.jsonl.writing import VERSION

LEFT_AS = "plain-chat"  # what lines are called that only leave again

_DATA_URL = re.compile(r"data:(?P<type>[\w.+/-]+);base64,(?P<data>.*)", re.DOTALL)
_TIMES = ("timestamp", "created_at", "createdAt", "time")

Object = dict[str, Any]


def is_plain(line: Object) -> bool:
    """Tell whether a file that begins with this line is a plain chat."""
    if "type" in line:
        return False
    return (isinstance(line.get("role"), str) and "content" in line) or _is_metadata(line)


class PlainChat:
    """Turns such lines into ours, each below the one before it."""

    def __init__(self) -> None:
        self._count = 0
        self._last: str | None = None

    def take(self, line: Object) -> list[Object]:
        """Return what a line says; the first comes with a header."""
        header = [] if self._count else [_header(line)]
        self._count += 1
        name = f"{self._count:08x}"
        fields = {"id": name, "parentId": self._last, "timestamp": _time(line)}
        self._last = name
        return [*header, {**_said(line), **fields}]

    def end(self) -> list[Object]:
        """Return what is left: every line was given out at once."""
        return []


def _header(line: Object) -> Object:
    name = line.get("key")
    named = {"id": name} if isinstance(name, str) and name else {}
    return {"type": "session", "version": VERSION, **named, "timestamp": _time(line)}


def _said(line: Object) -> Object:
    match line.get("role"):
        case "user":
            message = {"role": "user", "content": _content(line.get("content"))}
        case "assistant":
            message = _reply(line)
        case "tool":
            message = {
                "role": "toolResult",
                "toolCallId": line.get("tool_call_id"),
                "toolName": line.get("name"),
                "content": _content(line.get("content")),
                "isError": line.get("is_error") is True,
            }
        case str():
            message = line  # kept, and read by nobody
        case _:
            return {"type": "custom", "customType": LEFT_AS, "data": line}
    return {"type": "message", "message": message}


def _reply(line: Object) -> Object:
    thought = line.get("reasoning_content")
    content: list[Object] = []
    if isinstance(thought, str) and thought:
        content.append({"type": "thinking", "thinking": thought})
    said = _content(line.get("content"))
    content += said if isinstance(said, list) else [{"type": "text", "text": said}] * bool(said)
    calls = [_call(one) for one in _objects(line.get("tool_calls"))]
    return {
        "role": "assistant",
        "content": [*content, *calls],
        "model": line.get("model"),
        "stopReason": "toolUse" if calls else "stop",
    }


def _call(call: Object) -> Object:
    function = call.get("function")
    fields = cast("Object", function) if isinstance(function, dict) else call
    arguments = fields.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"arguments": arguments}
    return {
        "type": "toolCall",
        "id": call.get("id"),
        "name": fields.get("name"),
        "arguments": arguments,
    }


def _content(content: Any) -> str | list[Object]:
    """Return a content, with images as they are called here."""
    if isinstance(content, list):
        return [_block(one) for one in _objects(cast("list[Any]", content))]
    return content if isinstance(content, str) else ""


def _block(block: Object) -> Object:
    if block.get("type") in ("input_text", "output_text"):
        return {**block, "type": "text"}
    inner = block.get("image_url")
    address = cast("Object", inner).get("url") if isinstance(inner, dict) else inner
    if isinstance(address, str) and (found := _DATA_URL.fullmatch(address)) is not None:
        return {"type": "image", "data": found["data"], "mimeType": found["type"]}
    return block


def _time(line: Object) -> Any:
    return next((line[name] for name in _TIMES if line.get(name) is not None), None)


def _is_metadata(line: Object) -> bool:
    return line.get("_type") == "metadata"


def _objects(values: Any) -> list[Object]:
    if not isinstance(values, list):
        return []
    return [cast("Object", one) for one in cast("list[Any]", values) if isinstance(one, dict)]
