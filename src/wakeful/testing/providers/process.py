"""A stand-in provider in a process of its own, seen from a test."""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from subprocess import PIPE, Popen
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

    def plan(self, **steps: Sequence[Step]) -> None:
        """Say what is answered to questions with the marks that are named."""
        plans: Plans = {mark: tuple(wanted) for mark, wanted in steps.items()}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request("POST", "/plans", _encode(plans))
            connection.getresponse().read()

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

    async def saw(
        self, what: str, mark: str, count: int = 1, *, patience_s: float = PATIENCE_S
    ) -> None:
        """Return when the ledger has so many lines of a kind."""
        async with time_limit(self._clock, patience_s):
            while len(self.lines(what, mark)) < count:
                await self._clock.sleep(LOOK_EVERY_S)


@contextmanager
def providers(folder: Path) -> Generator[Providers, None, None]:
    """Run the stand-ins for as long as the block lasts; their ledger lies in the folder."""
    path = folder / "providers.jsonl"
    command = [sys.executable, "-m", "wakeful.testing.providers", "--ledger", str(path)]
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        # Leaving the block closes the input of the process, and with it the process.
        yield Providers(_decode(process.stdout.readline())["port"], path)
