"""The seam to models: a request goes in, deltas come out, then one reply."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, Protocol, runtime_checkable

from wakeful.vocabulary.agent import CACHE_EDGES_MS, ThinkingLevel
from wakeful.vocabulary.errors import Garbled, NothingSaid
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

USUAL_CONTEXT_WINDOW = 128_000  # tokens
LONGEST_REPLY = 4 * 1024 * 1024  # characters; a longer answer is garbled
MOST_CALLS = 1_000  # tool calls of one answer; with more it is garbled


class ToolSpec(Record):
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON Schema


class Request(Record):
    """One question to a model."""

    system: str
    messages: Sequence[Message]
    # The bytes of the messages' attachments, in base64, by their hash. What reaches a model is
    # only what it takes: images (PNG, JPEG, GIF, WebP) and documents (PDF), after the text.
    contents: Mapping[str, str] = {}
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None  # None: as the model itself likes
    turn_id: str = ""
    step: int = 1
    purpose: Literal["reply", "summary"] = "reply"


class Delta(Record):
    """A piece of the answer while it is being written; shown live, never stored.

    An empty one is a sign of life: the model is thinking, or writing a tool call.
    """

    text: str


class Restart(Record):
    """The answer so far counts for nothing: another model begins anew."""

    model: str  # the one that begins
    failure: str  # of the one that could not answer
    lost: float = 0.0  # dollars that its answer cost before it broke off, as far as is known


class Reply(Record):
    """A whole answer."""

    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""
    failures: tuple[str, ...] = ()  # of models that were asked before this one


Piece = Delta | Restart | Reply


@runtime_checkable
class Model(Protocol):
    """Anything that can answer; must raise Transient, Garbled or Permanent when it cannot.

    It may have a `context_window`: how many tokens it reads at once, None while that is not known.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield deltas, then exactly one reply, last."""
        ...


@runtime_checkable
class Closeable(Protocol):
    """A model that holds connections."""

    async def aclose(self) -> None: ...


@asynccontextmanager
async def asked(model: Model, request: Request) -> AsyncGenerator[AsyncIterator[Piece], None]:
    """Ask a model for as long as the block lasts; leaving it closes the model's connection."""
    pieces = model.stream(request)
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def known_window(model: Model) -> int | None:
    """Return how many tokens a model reads at once, or None if it does not say."""
    # Asked in every turn; `isinstance` of a protocol takes many times as long.
    window: int | None = getattr(model, "context_window", None)
    return window


def cache_edges(model: Model) -> tuple[int, int]:
    """Return between which lengths, in milliseconds, no pause should end: by then the provider's
    cache was just lost.
    """
    edges: tuple[int, int] = getattr(model, "cache_edges_ms", CACHE_EDGES_MS)
    return edges


def context_window(model: Model) -> int:
    """Return how many tokens a model reads at once, as far as anybody knows."""
    return known_window(model) or USUAL_CONTEXT_WINDOW


def as_message(reply: Reply) -> AssistantMessage:
    """Return a reply as the transcript keeps it, or raise Garbled if nobody could use it."""
    count = sum(isinstance(block, ToolCall) for block in reply.content)
    if count > MOST_CALLS:
        raise Garbled(f"the model called {count} tools at once; {MOST_CALLS} are allowed")
    content = tuple(_cleaned(block) for block in reply.content)
    message = AssistantMessage(
        content=content,
        stop_reason=reply.stop_reason,
        provider=clean(reply.provider),
        model=clean(reply.model),
        usage=reply.usage,
        failures=tuple(map(clean, reply.failures)),
    )
    ids = [call.id for call in message.tool_calls]
    if any(not call_id for call_id in ids):
        raise Garbled("the model called a tool without a call id")
    if len(set(ids)) != len(ids):
        raise Garbled("the model gave two tool calls the same id")
    if any(not call.name for call in message.tool_calls):
        raise Garbled("the model called a tool without a name")
    if not ids and not message.text.strip():
        raise NothingSaid("the model answered with nothing")
    if sum(map(_size, content)) > LONGEST_REPLY:
        raise Garbled(f"the model's answer is longer than {LONGEST_REPLY} characters")
    return message


def _cleaned(block: Block) -> Block:
    if isinstance(block, ToolCall):
        arguments = {clean(key): clean_json(value) for key, value in block.arguments.items()}
        name, keepsake = clean(block.name), clean_json(block.keepsake)
        return ToolCall(id=clean(block.id), name=name, arguments=arguments, keepsake=keepsake)
    if isinstance(block, Thinking):
        signature = None if block.signature is None else clean(block.signature)
        keepsake = clean_json(block.keepsake)
        return Thinking(text=clean(block.text), signature=signature, keepsake=keepsake)
    return Text(text=clean(block.text), keepsake=clean_json(block.keepsake))


def _size(block: Block) -> int:
    kept = 0 if block.keepsake is None else len(encode_message(block.keepsake))
    if isinstance(block, ToolCall):
        return kept + len(block.id) + len(block.name) + len(encode_message(block.arguments))
    if isinstance(block, Thinking):
        return kept + len(block.text) + len(block.signature or "")
    return kept + len(block.text)
