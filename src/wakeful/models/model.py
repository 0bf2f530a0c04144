"""The seam to models: a request goes in, deltas come out, then one reply."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, runtime_checkable

from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
    encode_message,
)
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean, clean_json

LONGEST_REPLY = 4 * 1024 * 1024  # characters; a longer answer is garbled


class ToolSpec(Record):
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON Schema


class Request(Record):
    """One question to a model."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    turn_id: str = ""
    step: int = 1


class Delta(Record):
    """A piece of the answer while it is being written; shown live, never stored."""

    text: str


class Reply(Record):
    """A whole answer."""

    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""


@runtime_checkable
class Model(Protocol):
    """Anything that can answer; must raise Transient, Garbled or Permanent when it cannot."""

    @property
    def name(self) -> str: ...

    def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Yield deltas, then exactly one reply, last."""
        ...


def as_message(reply: Reply) -> AssistantMessage:
    """Return a reply as the transcript keeps it, or raise Garbled if nobody could use it."""
    content = tuple(_cleaned(block) for block in reply.content)
    message = AssistantMessage(
        content=content,
        stop_reason=reply.stop_reason,
        provider=reply.provider,
        model=reply.model,
        usage=reply.usage,
    )
    ids = [call.id for call in message.tool_calls]
    if any(not call_id for call_id in ids):
        raise Garbled("the model called a tool without a call id")
    if len(set(ids)) != len(ids):
        raise Garbled("the model gave two tool calls the same id")
    if any(not call.name for call in message.tool_calls):
        raise Garbled("the model called a tool without a name")
    if not ids and not message.text.strip():
        raise Garbled("the model answered with nothing")
    if sum(map(_size, content)) > LONGEST_REPLY:
        raise Garbled(f"the model's answer is longer than {LONGEST_REPLY} characters")
    return message


def _cleaned(block: Block) -> Block:
    if isinstance(block, ToolCall):
        arguments = {clean(key): clean_json(value) for key, value in block.arguments.items()}
        return ToolCall(id=clean(block.id), name=clean(block.name), arguments=arguments)
    if isinstance(block, Thinking):
        signature = None if block.signature is None else clean(block.signature)
        return Thinking(text=clean(block.text), signature=signature)
    return Text(text=clean(block.text))


def _size(block: Block) -> int:
    if isinstance(block, ToolCall):
        return len(encode_message(block.arguments))
    if isinstance(block, Thinking):
        return len(block.text) + len(block.signature or "")
    return len(block.text)
