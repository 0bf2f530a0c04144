"""A stand-in provider in a process of its own, seen from a test."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from wakeful.testing import ledger
from wakeful.testing.ledger import Line
from wakeful.testing.providers.plan import Plans, Step
from wakeful.vocabulary.clock import SystemClock, time_limit

PATIENCE_S = 15.0
LOOK_EVERY_S = 0.02

_encode = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder().decode


class Providers:
    """The stand-ins as their tests see them: an address, plans, a ledger."""

    def __init__(self, port: int, path: Path) -> None:
        self.port = port
        self._path = path
        self._clock = SystemClock()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead a runtime here."""
        address = f"http://127.0.0.1:{self.port}"
        return {
            "ANTHROPIC_API_KEY": "test",
            "ANTHROPIC_BASE_URL": address,
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": f"{address}/v1",
            "OLLAMA_BASE_URL": f"{address}/v1",
        }

    async def plan(self, **steps: Sequence[Step]) -> None:
        """Say what is answered to questions with the marks that are named."""
        plans: Plans = {mark: tuple(wanted) for mark, wanted in steps.items()}
        content = _encode(plans)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(
            b"POST /plans HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content)
        )
        await reader.readuntil(b"{}")
        writer.close()
        await writer.wait_closed()

    def lines(self, what: str = "asked", mark: str | None = None) -> list[Line]:
        """Return the ledger's lines of a kind, of the questions with a mark."""
        every = ledger.read(self._path)
        marks = {line["number"]: line["mark"] for line in every if line["what"] == "asked"}
        return [
            line for line in every if line["what"] == what and mark in (None, marks[line["number"]])
        ]

    def bodies(self, mark: str) -> list[dict[str, Any]]:
        """Return what was sent with a mark, question by question."""
        return [_decode(line["body"]) for line in self.lines("asked", mark)]

    async def saw(self, what: str, mark: str, count: int = 1) -> None:
        """Return when the ledger has so many lines of a kind."""
        async with time_limit(self._clock, PATIENCE_S):
            while len(self.lines(what, mark)) < count:
                await self._clock.sleep(LOOK_EVERY_S)


@asynccontextmanager
async def providers(folder: Path) -> AsyncGenerator[Providers, None]:
    """Run the stand-ins for as long as the block lasts."""
    path = folder / "providers.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "wakeful.testing.providers", "--ledger", str(path)),
        stdin=PIPE,
        stdout=PIPE,
        env=dict(os.environ),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with time_limit(SystemClock(), PATIENCE_S):
            told = _decode(await process.stdout.readline())
        yield Providers(told["port"], path)
    finally:
        process.stdin.close()
        await process.wait()
