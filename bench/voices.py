"""The floor of every answer: a bare stream of `httpx2`, its events decoded with msgspec."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import msgspec

from wakeful.models.formats.anthropic import AnthropicMessages
from wakeful.models.model import Request
from wakeful.tools.builtin import default_tools
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary.message import Message
from wakeful.vocabulary.stimulus import Trust

MODEL = "anthropic:claude-opus-5"

_encode = msgspec.json.Encoder().encode


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Event(msgspec.Struct):
    type: str
    delta: _Delta | None = None


_decode = msgspec.json.Decoder(_Event).decode


class BareVoice:
    """Asks a stand-in of Anthropic what a turn would ask, and keeps nothing."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/messages"
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx2.AsyncClient(timeout=None, limits=limits, trust_env=False)

    async def ask(self, question: Any) -> int:
        """Return how many letters came."""
        size, rest = 0, b""
        async with self._client.stream("POST", self._url, content=_encode(question)) as answer:
            async for chunk in answer.aiter_bytes():
                *events, rest = (rest + chunk).split(b"\n\n")
                for event in events:
                    found = _decode(event[event.index(b"data: ") + 6 :])
                    if found.delta is not None:
                        size += len(found.delta.text)
        return size

    async def at_once(self, question: Any, sessions: int, times: int) -> None:
        """Ask what that many sessions would, each one after the other."""
        async with asyncio.TaskGroup() as group:
            for _ in range(sessions):
                group.create_task(self._times(question, times))

    async def close(self) -> None:
        await self._client.aclose()

    async def _times(self, question: Any, times: int) -> None:
        for _ in range(times):
            await self.ask(question)


def question_of(messages: Sequence[Message]) -> Any:
    """Return a question as plain values, which have to be encoded."""
    tools = tuple(Toolbox(list(default_tools())).specs(Trust.OPERATOR))
    request = Request(system="s" * 2000, messages=messages, tools=tools)
    form = AnthropicMessages(MODEL.partition(":")[2], "anthropic")
    return msgspec.json.decode(form.body(request, None))
