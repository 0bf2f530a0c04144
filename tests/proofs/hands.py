"""Test tools of every effect class, each of which writes down what it did, outside the runtime."""

import asyncio
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.proofs.gates import Gates
from wakeful.testing import ledger
from wakeful.testing.ledger import Ledger
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolContext, ToolResult
from wakeful.vocabulary.clock import Clock

SLOW_S = 0.05
STUBBORN_S = 30.0  # longer than anybody waits for a tool that was cancelled

Work = Callable[[ToolContext, str], Awaitable[str]]


class Hands:
    """The tools `look` and `hear` (read), `put` (idempotent), `act`, `dare` (effect), `stumble`."""

    def __init__(self, lines: Ledger, gates: Gates, clock: Clock) -> None:
        self._lines = lines
        self._gates = gates
        self._clock = clock
        past = ledger.read(lines.path)
        self._begun = {line["key"] for line in past if line["what"] == "begun"}
        self._acted = {line["key"] for line in past if line["what"] == "acted"}

    def tools(self) -> list[Tool]:
        async def look(context: ToolContext, how: str = "") -> str:
            """Look at something."""
            return await self._work("look", context, how)

        async def put(context: ToolContext, how: str = "") -> str:
            """Put something in its place; doing it twice with one key is doing it once."""
            return await self._work("put", context, how)

        async def act(context: ToolContext, how: str = "") -> str:
            """Do something that cannot be undone."""
            return await self._work("act", context, how)

        async def dare(context: ToolContext, which: str, how: str = "") -> str:
            """Do something that somebody must approve."""
            return await self._work("dare", context, how)

        async def hear(context: ToolContext, how: str = "") -> ToolResult:
            """Hear what a stranger says."""
            heard = await self._work("hear", context, how)
            return ToolResult(text=heard, is_external=True)

        def stumble(context: LedgerContext, how: str = "") -> str:
            """Fail inside the commit."""
            raise RuntimeError(f"stumbled over {context.key}")

        return [
            Tool(look, effect=Effect.READ, is_for_external=True),
            Tool(hear, effect=Effect.READ, is_for_external=True),
            Tool(put, effect=Effect.IDEMPOTENT),
            Tool(act, effect=Effect.EFFECT),
            Tool(dare, effect=Effect.EFFECT),
            Tool(stumble, effect=Effect.LEDGER),
        ]

    async def _work(self, name: str, context: ToolContext, how: str) -> str:
        key = context.key
        is_first = key not in self._begun
        self._begun.add(key)
        self._lines.note("begun", tool=name, key=key, turn=context.turn_id)
        if how == "die-before" and is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        await self._behave(how, is_first=is_first)
        if name != "put" or key not in self._acted:
            self._acted.add(key)
            self._lines.note("acted", tool=name, key=key, turn=context.turn_id)
        if how == "die" and is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        result = f"{name} did {key}"
        self._lines.note("ended", tool=name, key=key, turn=context.turn_id, result=result)
        return result

    async def _behave(self, how: str, *, is_first: bool) -> None:
        if how == "slow":
            await self._clock.sleep(SLOW_S)
        elif how == "stubborn":
            await self._refuse_to_end()
        elif how.startswith("gate="):
            await self._gates.wait(how.removeprefix("gate="))
        elif how == "deaf" and is_first:
            await self._gates.stay("deaf")
        elif how == "term" and is_first:
            os.kill(os.getpid(), signal.SIGTERM)
        elif how == "block" and is_first:
            threading.Event().wait()  # on the event loop, where nothing may block
        elif how == "spin" and is_first:
            re.match(r"(a+)+$", "a" * 64 + "b")  # for ever, and with Python's own lock
        elif how == "fail":
            raise RuntimeError("the tool was told to fail")

    async def _refuse_to_end(self) -> None:
        """Work for a moment; once cancelled, go on as if nobody had said so."""
        try:
            await self._clock.sleep(SLOW_S)
        except asyncio.CancelledError:
            until = self._clock.monotonic() + STUBBORN_S
            while self._clock.monotonic() < until:
                with suppress(asyncio.CancelledError):
                    await self._clock.sleep(SLOW_S)
