"""Anthropic's Messages: how the events of an answer are read."""

from typing import Any

import msgspec
from msgspec import Struct

from wakeful.models.formats.format import (
    Finish,
    RefusedMidway,
    WireAnswer,
    arguments_of,
    call_id_of,
    count_of,
    decoder,
    keepsake_of,
    model_of,
)
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import Block, Text, Thinking, ToolCall, Usage

REDACTED = "redacted_thinking"

_FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class _Counts(Struct):
    """Numbers, of most; what else they are does not make an answer unreadable."""

    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


class _Start(Struct):
    model: Any = ""
    usage: _Counts | None = None


class _Head(Struct):
    """How a block begins."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _Delta(Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Event(Struct):
    type: str
    index: int = -1
    delta: _Delta | None = None
    content_block: _Head | None = None
    message: _Start | None = None
    usage: _Counts | None = None
    error: Any = None


_decode = decoder(_Event)


class _Part:
    """A block while it is being written."""

    def __init__(self, head: _Head) -> None:
        self.kind = head.type
        self.id = head.id
        self.name = head.name or ""
        self.input: dict[str, Any] = head.input or {}
        self.signatures: list[str] = [head.data or head.signature or ""]
        first = head.text or head.thinking or ""
        self.pieces: list[str] = [first] if first else []

    def block(self) -> Block | None:
        text, signature = "".join(self.pieces), "".join(self.signatures) or None
        match self.kind:
            case "text":
                return Text(text=text) if text else None
            case "thinking":
                return Thinking(text=text, signature=signature)
            case "redacted_thinking":
                return Thinking(text="", signature=signature, keepsake=keepsake_of(REDACTED))
            case "tool_use":
                arguments = arguments_of(self.name, text) or self.input
                return ToolCall(id=call_id_of(self.id), name=self.name, arguments=arguments)
            case _:
                return None


class AnthropicReader:
    """Reads one answer."""

    def __init__(self) -> None:
        self.size = 0
        self._model: str | None = None
        self._parts: dict[int, _Part] = {}
        self._reason: str | None = None
        self._counts = _Counts()
        self.is_over = False

    def take(self, data: bytes) -> str:
        event = _decode(data)
        match event.type:
            case "content_block_delta":
                return self._grow(event)
            case "content_block_start":
                self.size += len(data)
                return self._open(event)
            case "message_start":
                if self._model is not None or event.message is None:
                    raise Garbled("the answer begins twice, or with nothing")
                self._model = model_of(event.message.model)
                self._count(event.message.usage)
            case "message_delta":
                self._refuse_disorder()
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._reason = event.delta.stop_reason
            case "message_stop":
                self.is_over = True
            case "error":
                raise RefusedMidway(event.error)
            case _:
                pass
        return ""

    @property
    def finish(self) -> Finish | None:
        return None if self._reason is None else _FINISHES.get(self._reason, "stop")

    def answer(self) -> WireAnswer:
        counts = self._counts
        read = count_of(counts.cache_read_input_tokens)
        written = count_of(counts.cache_creation_input_tokens)
        blocks = (part.block() for part in self._parts.values())
        return WireAnswer(
            content=tuple(block for block in blocks if block is not None),
            usage=Usage(
                input=count_of(counts.input_tokens) + read + written,
                output=count_of(counts.output_tokens),
                cache_read=read,
                cache_write=written,
            ),
            model=self._model or "",
        )

    def _open(self, event: _Event) -> str:
        self._refuse_disorder(event.index)
        if self.is_over or event.content_block is None or event.index in self._parts:
            raise Garbled("a block of the answer begins in the wrong place")
        self._parts[event.index] = _Part(event.content_block)
        return event.content_block.text or ""

    def _grow(self, event: _Event) -> str:
        part, delta = self._parts.get(event.index), event.delta
        if part is None or delta is None or self.is_over:
            raise Garbled("a piece of the answer belongs to no block")
        if delta.type == "signature_delta":
            part.signatures.append(delta.signature)
            self.size += len(delta.signature)
            return ""
        more = delta.text or delta.thinking or delta.partial_json
        part.pieces.append(more)
        self.size += len(more)
        return more if delta.type == "text_delta" else ""

    def _refuse_disorder(self, index: int = 0) -> None:
        if self._model is None:
            raise Garbled(f"block {index} comes before the answer's beginning")

    def _count(self, counts: _Counts | None) -> None:
        if counts is not None:
            fields = {
                name: n for name, n in msgspec.structs.asdict(counts).items() if n is not None
            }
            self._counts = msgspec.structs.replace(self._counts, **fields)
