"""A first question that never leaves the process.

Vendors' clients import and build types when they read their first answers, for up to a second. A
rehearsal makes them do so in a thread instead of on the event loop.
"""

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import msgspec
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import infer_model
from pydantic_ai.providers import Provider, infer_provider_class

Event = dict[str, Any]

_PART: Event = {"type": "output_text", "text": "a", "annotations": []}
_SAID: Event = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [_PART],
}
_CALL: Event = {
    "type": "function_call",
    "id": "f",
    "call_id": "c",
    "name": "n",
    "arguments": "{}",
    "status": "completed",
}
_WHOLE: Event = {
    "id": "r",
    "object": "response",
    "created_at": 0,
    "model": "m",
    "status": "completed",
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "output": [_SAID, _CALL],
}
_USAGE: Event = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
_TEXT: Event = {"item_id": "m", "output_index": 0, "content_index": 0, "logprobs": []}
_ARGUMENTS: Event = {"item_id": "f", "output_index": 1}
# Only OpenAI's newer interface takes long; any other reads the first of these and gives up.
_EVENTS: tuple[Event, ...] = (
    {"type": "response.created", "response": _WHOLE},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_SAID, "content": []}},
    {"type": "response.content_part.added", "part": {**_PART, "text": ""}, **_TEXT},
    {"type": "response.output_text.delta", "delta": "a", **_TEXT},
    {"type": "response.output_text.done", "text": "a", **_TEXT},
    {"type": "response.content_part.done", "part": _PART, **_TEXT},
    {"type": "response.output_item.done", "output_index": 0, "item": _SAID},
    {"type": "response.output_item.added", "output_index": 1, "item": {**_CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "delta": "{}", **_ARGUMENTS},
    {"type": "response.function_call_arguments.done", "arguments": "{}", **_ARGUMENTS},
    {"type": "response.output_item.done", "output_index": 1, "item": _CALL},
    # Slightly wrong on purpose: so the reader's slower path for odd events is warmed up, too.
    {"type": "response.completed", "response": {**_WHOLE, "usage": _USAGE}},
)
_STREAM = b"".join(
    b"data: %b\n\n" % msgspec.json.encode({"sequence_number": number, **event})
    for number, event in enumerate(_EVENTS)
)


async def rehearse(name: str) -> None:
    """Ask a model of ours that always answers the same; raises whatever comes of it."""
    model = infer_model(name, _rehearsing)
    question = [ModelRequest.user_text_prompt("ping")]
    with _unlogged():
        async with model_request_stream(model, question) as streamed:
            async for _ in streamed:
                pass


@contextmanager
def _unlogged() -> Generator[None]:
    """Keep the client from logging an answer of the provider that there never was."""
    here = threading.get_ident()

    def is_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    client_log = logging.getLogger("httpx2")
    client_log.addFilter(is_elsewhere)
    try:
        yield
    finally:
        client_log.removeFilter(is_elsewhere)


def _rehearsing(provider: str) -> Provider[Any]:
    make: Any = infer_provider_class(provider)
    return make(http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(_answer)))


def _answer(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_STREAM)
