"""Shared by the engine's tests: what brings a runtime to the moment a promise is about."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

from tests.patience import patience
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.tools.tool import Tool, tool
from wakeful.vocabulary.clock import Alarm, ManualClock

CYCLES = 50  # of the event loop, or of the store: more than anything that is ready needs
PATIENCE_S = patience(10)


class Gate:
    """A tool that waits inside until the test opens it."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.passed = 0
        self.tool: Tool = tool(name="gate", effect="effect")(self._gate)

    async def _gate(self) -> str:
        """Wait."""
        self.entered.set()
        await self.opened.wait()
        self.passed += 1
        return "open"


class OnCue(Scripted):
    """A model that has heard the question and answers when it is told to."""

    def __init__(self, lines: list[str | Reply]) -> None:
        super().__init__(lines)
        self.asked = asyncio.Event()
        self.cue = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        self.asked.set()
        await self.cue.wait()
        async for piece in super().stream(request):
            yield piece


class CountingClock(ManualClock):
    """A manual clock that counts who waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self.asleep = asyncio.Event()  # a lane waits for another try

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("lane "):
            self.asleep.set()
        await super().sleep(seconds)

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        self.waits += 1
        return super().call_later(seconds, act)


class Hold:
    """A write that keeps the writer busy: what is written meanwhile shares the next group."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._ended = threading.Event()

    def start(self, runtime: Runtime, group: asyncio.TaskGroup) -> None:
        group.create_task(runtime.store.transact(self._hold))

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, PATIENCE_S)

    def end(self) -> None:
        self._ended.set()

    async def end_soon(self) -> None:
        await cycles()
        self.end()

    def _hold(self, tx: Tx) -> None:
        self._entered.set()
        assert self._ended.wait(PATIENCE_S)


async def cycles() -> None:
    """Let everything on the event loop that is ready run."""
    for _ in range(CYCLES):
        await asyncio.sleep(0)


async def rounds(runtime: Runtime) -> None:
    """Read from the store often enough for anything that spins to be seen spinning."""
    for _ in range(CYCLES):
        await runtime.store.read("SELECT 1")
