"""However a tick, a wake or a heartbeat ends, there is one timer of its kind for the next."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.patience import patience
from wakeful.assembly.hooks import Hooks
from wakeful.gate.wakes import PASSED, GateVerdict, Verdict, Wake
from wakeful.models.model import Request
from wakeful.models.scripted import Line, Scripted
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, call, says
from wakeful.turn.agent import Agent
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.proactive import ProactiveRules

MAIN = "agent:main:main"
HOUR_S = 3600
ACTS = ("time", "halt", "resume", "stop", "message", "rest", "fail", "budget", "quiet", "restart")


class Life:
    """An agent that ticks, sleeps and beats, and what is done to it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._clock = ManualClock()
        self._verdict = PASSED
        self._fails = False
        self._stack = AsyncExitStack()
        self.runtime = self._made()

    async def play(self, acts: Sequence[str]) -> None:
        await self._stack.enter_async_context(self.runtime)
        try:
            for act in acts:
                await self.act(act)
                await self.rest()
                await self.check(act)
        finally:
            await self._stack.aclose()

    async def act(self, act: str) -> None:
        match act:
            case "time":
                self._clock.advance(HOUR_S)
            case "halt":
                await self.runtime.halt()
            case "resume":
                await self.runtime.resume()
            case "stop":
                await self.runtime.stop()
            case "message" | "rest":
                await self.runtime.send(act)
            case "fail":
                self._fails = not self._fails
            case "budget" | "quiet":
                self._refuse(Verdict.BUDGET if act == "budget" else Verdict.QUIET_HOURS)
            case _:
                await self._stack.aclose()
                self.runtime = self._made()
                await self._stack.enter_async_context(self.runtime)

    async def rest(self) -> None:
        """Wait until nothing is due: there is no event for that."""
        async with asyncio.timeout(patience(20)):
            while await self._has_something_due():
                pass  # each look waits for the store

    async def check(self, act: str) -> None:
        rows = await self.runtime.store.read("SELECT kind, id, due_at FROM timers")
        found = {kind: due_at for kind, _, due_at in rows}
        assert len(found) == len(rows), act
        assert {"tick", "heartbeat"} <= found.keys(), act
        asleep = await self.runtime.store.read("SELECT wake_at FROM sleeps WHERE wake_id IS NULL")
        assert all(found.get("sleep") == wake_at for (wake_at,) in asleep), act

    def _made(self) -> Runtime:
        agent = Agent(
            model=Scripted(self._answer),
            proactive=ProactiveRules(enabled=True),
            heartbeat=HeartbeatRules(prompt="Look around."),
        )
        runtime = Runtime(
            agents=[agent], settings=Settings(home=self._home, drain_s=0), clock=self._clock
        )
        plan = runtime._plan  # pyright: ignore[reportPrivateUsage]
        runtime._plan = replace(plan, hooks=Hooks(may_wake=self._may_wake))  # pyright: ignore[reportPrivateUsage]
        return runtime

    def _answer(self, request: Request) -> Line:
        if self._fails:
            return ValueError("broken")
        last = request.messages[-1].text
        if last.endswith("rest"):
            return says("", call("sleep", duration_ms=7_200_000))
        return "NO_REPLY"

    def _refuse(self, verdict: Verdict) -> None:
        look_at = self._clock.now() + 2 * HOUR_S * 1000
        is_new = self._verdict.verdict is not verdict
        self._verdict = GateVerdict(verdict=verdict, look_at=look_at) if is_new else PASSED

    def _may_wake(self, _tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        return [PASSED if wake.kind.rule.is_person else self._verdict for wake in wakes]

    async def _has_something_due(self) -> bool:
        now = self._clock.now()
        found = await self.runtime.store.read(
            "SELECT 1 FROM timers WHERE due_at <= :now UNION ALL "
            "SELECT 1 FROM lanes WHERE owner IS NOT NULL OR ready_at <= :now LIMIT 1",
            now=now,
        )
        return bool(found)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(ACTS), min_size=3, max_size=9))
@example(["rest", "halt", "time", "time", "resume", "time", "time"])
@example(["rest", "quiet", "time", "time", "restart", "quiet", "time", "time"])
@example(["fail", "time", "time", "message", "fail", "rest", "message", "time"])
@example(["budget", "time", "stop", "budget", "time", "restart", "time"])
def test_whatever_happens_there_is_one_timer_of_each_kind(acts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(Life(Path(home)).play(acts))
