"""OpenAI's Responses: how the events of an answer are read.

Words are shown as they come; what is kept is read from each item when it is whole.
"""

from typing import Any

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

_REASONS: dict[str, Finish] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Item(Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None


class _InputDetails(Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Counts(Struct):
    """Numbers, of most; what else they are does not make an answer unreadable."""

    input_tokens: Any = None
    output_tokens: Any = None
    input_tokens_details: _InputDetails | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    model: Any = ""
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Counts | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _Event(Struct):
    type: str
    delta: Any = None  # text, in what we read
    output_index: int = 0
    item: _Item | None = None
    response: _Response | None = None
    code: Any = None
    message: Any = None
    error: Any = None


_decode = decoder(_Event)


class ResponsesReader:
    """Reads one answer."""

    def __init__(self) -> None:
        self.size = 0
        self._items: dict[int, _Item] = {}
        self._end: _Response | None = None

    @property
    def is_over(self) -> bool:
        return self._end is not None

    def take(self, data: bytes) -> str:
        if data == b"[DONE]":  # of servers that only speak like OpenAI
            return ""
        event = _decode(data)
        match event.type:
            case "response.output_text.delta":
                text = event.delta if isinstance(event.delta, str) else ""
                self._refuse_more()
                self.size += len(text)
                return text
            case "response.output_item.done" if event.item is not None:
                self._refuse_more()
                self.size += len(data)
                self._items[event.output_index] = event.item
            case "response.completed" | "response.incomplete" if event.response is not None:
                self._end = event.response
            case "response.failed" | "error":
                within = None if event.response is None else event.response.error
                outside = {"code": event.code, "message": event.message}
                raise RefusedMidway(within or event.error or outside)
            case _:
                self.size += len(event.delta) if isinstance(event.delta, str) else 0
        return ""

    @property
    def finish(self) -> Finish | None:
        end = self._end
        if end is None or end.status == "cancelled":
            return None
        if any(part.type == "refusal" for item in self._whole() for part in item.content or ()):
            return "content_filter"
        reason = end.incomplete_details.reason if end.incomplete_details is not None else None
        return _REASONS.get(reason or "", "stop")

    def answer(self) -> WireAnswer:
        end = self._end or _Response()
        counts = end.usage or _Counts()
        details = counts.input_tokens_details or _InputDetails()
        return WireAnswer(
            content=tuple(block for item in self._whole() for block in _blocks(item)),
            usage=Usage(
                input=count_of(counts.input_tokens),
                output=count_of(counts.output_tokens),
                cache_read=count_of(details.cached_tokens),
                cache_write=count_of(details.cache_write_tokens),
            ),
            model=model_of(end.model),
        )

    def _whole(self) -> list[_Item]:
        """Return the items in their order; of a server that sends them only at the end, too."""
        if self._items or self._end is None:
            return [item for _, item in sorted(self._items.items())]
        return self._end.output or []

    def _refuse_more(self) -> None:
        if self._end is not None:
            raise Garbled("the answer went on after its end")


def _blocks(item: _Item) -> list[Block]:
    match item.type:
        case "message":
            kept = keepsake_of(item.id, phase=item.phase)
            texts = [part.text or "" for part in item.content or () if part.type == "output_text"]
            return [Text(text=text, keepsake=kept) for text in texts]
        case "function_call":
            name = item.name or ""
            return [
                ToolCall(
                    id=call_id_of(item.call_id),
                    name=name,
                    arguments=arguments_of(name, item.arguments or ""),
                    keepsake=keepsake_of(item.id),
                )
            ]
        case "reasoning":
            kept = keepsake_of(item.id)
            sealed = item.encrypted_content or None
            summaries = [part.text or "" for part in item.summary or ()] or [""]
            if not sealed and not any(summaries):
                return []
            return [
                Thinking(text=text, signature=None if number else sealed, keepsake=kept)
                for number, text in enumerate(summaries)
            ]
        case _:
            return []
