"""The ids and names of tool calls, as providers with rules about them take them.

A conversation may come from several models and tools: some number their calls anew in every reply,
some write ids that others refuse. What is kept stays as it came; only what is sent is renamed, the
same way every time, so that a prompt that grows keeps its bytes. A model may call a tool that there
is not, by any name: sent back as it came, it would be refused for ever.
"""

import hashlib
import re
from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.vocabulary.message import AssistantMessage, Message, ToolCall, ToolMessage

LONGEST_ID = 64

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def legal_name(name: str) -> str:
    """Return the name of a tool as every provider takes it."""
    if _LEGAL.fullmatch(name):
        return name
    return _ILLEGAL.sub("_", name[: 4 * LONGEST_ID])[:LONGEST_ID] or "_"


def short_id(call_id: str) -> str:
    """Return the id of a call, unless it is longer than anybody takes."""
    return call_id if len(call_id) <= LONGEST_ID else _name(call_id, 1)


def with_legal_ids(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages whose calls have ids that are plain, short and used once; results follow."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}  # how the last call of each id is called
    sent: list[Message] = []
    is_renamed = False
    for message in messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            for call in message.tool_calls:
                counts[call.id] = counts.get(call.id, 0) + 1
                names[call.id] = _name(call.id, counts[call.id])
            message = _renamed(message, names)
        elif isinstance(message, ToolMessage):
            name = names.get(message.call_id, message.call_id)
            message = message if name == message.call_id else replace(message, call_id=name)
        is_renamed = is_renamed or message is not messages[len(sent)]
        sent.append(message)
    return sent if is_renamed else messages


def _name(call_id: str, count: int) -> str:
    if count == 1 and _LEGAL.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(f"{count} {call_id}".encode()).hexdigest()[:24]


def _renamed(message: AssistantMessage, names: dict[str, str]) -> AssistantMessage:
    calls = message.tool_calls
    if all(names[call.id] == call.id and legal_name(call.name) == call.name for call in calls):
        return message
    content = tuple(
        replace(block, id=names[block.id], name=legal_name(block.name))
        if isinstance(block, ToolCall)
        else block
        for block in message.content
    )
    return replace(message, content=content)
