"""A server of one's own that is picky about everything: no conversation gets stuck with it."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.pictures import attachment, png
from wakeful.models.providers import ProviderSettings, WireFormat
from wakeful.prompts import compaction as template
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.tools.tool import Effect, Tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits

Body = dict[str, Any]
IMAGE_TOKENS = 1_000


class Picky:
    """Refuses bodies that are too large, too many pictures, too many tokens, and thoughts; with a
    strict template also system messages, and people who speak twice in a row.
    """

    def __init__(self, window: int, images: int, size: int, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.window, self.images, self.size = window, images, size
        self.refused: Counter[str] = Counter()
        self._calls = 0

    def answer(self, raw: bytes) -> tuple[int, bytes]:
        body: Body = json.loads(raw)
        why, said = self._fault(body, len(raw))
        if why:
            self.refused[why] += 1
            error = {"object": "error", "message": json.loads(said) if said[0] == "[" else said}
            return (413, said.encode()) if why == "size" else (400, json.dumps(error).encode())
        last = body["messages"][-1]
        message: Body = {"content": "words " * 50}
        if template.SYSTEM in str(body["messages"][0].get("content")):
            headings = template.headings(is_split=True)
            message = {"content": "\n".join(f"{heading}\nshort" for heading in headings)}
        elif last["role"] == "user" and "use a tool" in json.dumps(last):
            self._calls += 1
            function = {"name": "look", "arguments": "{}"}
            message = {"tool_calls": [{"id": f"c{self._calls}", "function": function}]}
        deltas = [{"reasoning_content": "hm"}, message]
        chunks = [{"choices": [{"delta": one}]} for one in deltas]
        end: Body = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        events = [*map(json.dumps, [*chunks, end]), "[DONE]"]
        return 200, "".join(f"data: {event}\n\n" for event in events).encode()

    def _fault(self, body: Body, size: int) -> tuple[str, str]:
        if size > self.size:
            return "size", "<html>413 Request Entity Too Large</html>"
        parts = [part for message in body["messages"] for part in _parts(message)]
        images = sum(part["type"] == "image_url" for part in parts)
        if images > self.images:
            return (
                "images",
                f"At most {self.images} image(s) may be provided in one request.",
            )
        size = sum(len(part.get("text", "")) for part in parts) + len(json.dumps(body.get("tools")))
        tokens = size // 4 + images * IMAGE_TOKENS + body.get("max_tokens", 0)
        if tokens > self.window:
            return "tokens", f"This model's maximum context length is {self.window} tokens."
        if any("reasoning_content" in message for message in body["messages"]):
            place = ["body", "messages", 1, "assistant", "reasoning_content"]
            fault = {"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are forbidden"}
            return "thoughts", json.dumps([fault])
        spoken = [
            one["role"]
            for one in body["messages"]
            if one["role"] in ("user", "assistant") and not one.get("tool_calls")
        ]
        if self._is_strict and "system" in {one["role"] for one in body["messages"]}:
            return "system", "System role not supported"
        if self._is_strict and any(one == next for one, next in pairwise(spoken)):
            return "turns", "Conversation roles must alternate user/assistant/user/assistant/..."
        return "", ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                status, body = self.answer(await reader.readexactly(length))
                kind = "text/event-stream" if status == 200 else "application/json"
                lines = (
                    f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}"
                )
                writer.write(f"{lines}\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()


def _parts(message: Body) -> list[Body]:
    content = message.get("content") or ""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def look() -> str:
    """Look."""
    return "data " * 4_000


@asynccontextmanager
async def talking_with(picky: Picky) -> AsyncGenerator[Runtime]:
    server = await asyncio.start_server(picky.serve, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    own = ProviderSettings(kind=WireFormat.OPENAI_CHAT, base_url=base_url, key="key")
    agent = Agent(
        model="own:pixtral",
        tools=[Tool(look, effect=Effect.READ)],
        has_default_tools=False,
        limits=Limits(retries=0),
    )
    async with (
        server,
        Runtime(agents=[agent], settings=Settings(providers={"own": own})) as runtime,
    ):
        yield runtime


@pytest.mark.parametrize(
    ("window", "images", "size", "is_strict"),
    [
        (4_000, 1, 60_000, False),
        (8_000, 2, 300_000, True),
        (32_000, 1, 300_000, True),
    ],
)
async def test_every_turn_of_a_talk_with_pictures_and_tools_is_answered(
    window: int, images: int, size: int, is_strict: bool
):
    random, picky = Random(window), Picky(window, images, size, is_strict=is_strict)
    async with talking_with(picky) as runtime:
        for number in range(24):
            picture = png(shade=number) + random.randbytes(random.choice([10, 30_000, 250_000]))
            along = [attachment(picture)] if number % 3 == 1 else []
            words = ["use a tool", "see", "blah " * random.choice([100, 8_000, 40_000])]

            receipt = await runtime.send(words[number % 3], attachments=along)
            turn = await runtime.wait(receipt)

            assert turn is not None
            assert (turn.state, turn.error) == (TurnState.DONE, None)

    assert {"size", "tokens", "thoughts"} <= set(picky.refused)
    assert picky.refused["system"] == is_strict
    assert picky.refused["thoughts"] == 1  # from then on it is known
