"""Time-out, stop and the end of a runtime work on whatever swallows its cancellation."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.engine.looking import turn_of
from wakeful.models.model import Delta, Reply, Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, Scripted, call, in_memory, says, wait_for
from wakeful.tools.tool import Effect, Tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.apart import GRACE_S

TIMEOUT_S = 5.0


class Deaf:
    """Goes on for ever, whoever tells it to end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.told = asyncio.Event()

    async def go_on(self) -> str:
        """Go on."""
        while True:
            try:
                self.begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.told.set()

    def tool(self, effect: Effect = Effect.EFFECT) -> Tool:
        return Tool(self.go_on, effect=effect, timeout_s=TIMEOUT_S)


class DeafModel(Scripted):
    """Begins to answer its first question, and never ends that."""

    def __init__(self, deaf: Deaf, lines: list[str | Reply]) -> None:
        super().__init__(lines)
        self._deaf = deaf

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        if not self._deaf.begun.is_set():
            yield Delta(text="well, ")
            await self._deaf.go_on()
        async for piece in super().stream(request):
            yield piece


async def let_go(deaf: Deaf, clock: ManualClock) -> None:
    await deaf.told.wait()
    clock.advance(GRACE_S)


async def calls(runtime: Runtime) -> list[str]:
    rows = await runtime.store.read("SELECT state FROM tool_calls ORDER BY position")
    return [row[0] for row in rows]


def abandoned(runtime: Runtime, kind: str) -> float | None:
    registry = runtime.metrics.registry
    return registry.get_sample_value("wakeful_abandoned_calls_total", {"kind": kind})


@pytest.mark.parametrize(("effect", "state"), [(Effect.EFFECT, "unknown"), (Effect.READ, "failed")])
async def test_the_time_out_of_a_deaf_tool_ends_its_call(effect: Effect, state: str):
    clock, deaf = ManualClock(), Deaf()
    script = [says("", call("go_on")), "it did not answer", "free"]
    async with in_memory(script, tools=[deaf.tool(effect)], clock=clock) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        clock.advance(TIMEOUT_S)
        await let_go(deaf, clock)
        turn = await turn_of(runtime, receipt)
        found = await calls(runtime)
        after = await turn_of(runtime, await runtime.send("and now?"))

    assert (turn.state, turn.reply) == (TurnState.DONE, "it did not answer")
    assert found == [state]
    assert after.reply == "free"
    assert abandoned(runtime, "tool") == 1


@pytest.mark.parametrize("beside", [1, 3])
async def test_a_stop_ends_the_turn_of_a_deaf_tool(beside: int):
    clock, deaf = ManualClock(), Deaf()
    asked = [call("go_on", f"c{number}") for number in range(beside)]
    tools = [deaf.tool(Effect.READ)]
    async with in_memory([says("", *asked), "free"], tools=tools, clock=clock) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        await runtime.stop()
        await let_go(deaf, clock)
        turn = await turn_of(runtime, receipt)
        found = await calls(runtime)
        after = await turn_of(runtime, await runtime.send("and now?"))

    assert turn.state is TurnState.STOPPED
    assert found == ["unknown"] * beside
    assert after.reply == "free"
    assert abandoned(runtime, "tool") == beside


async def test_a_stop_takes_two_seconds_at_most():
    deaf = Deaf()
    script = [says("", call("go_on")), "free"]
    async with in_memory(script, tools=[deaf.tool()]) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        begun_s = runtime.clock.monotonic()
        await runtime.stop()
        await turn_of(runtime, receipt)
        took_s = runtime.clock.monotonic() - begun_s

    assert took_s < GRACE_S + 1


async def test_a_runtime_ends_with_a_deaf_tool_in_it(tmp_path: Path):
    clock, deaf = ManualClock(), Deaf()
    settings = Settings(home=tmp_path, drain_s=0)
    script = [says("", call("go_on"))]
    async with (
        asyncio.TaskGroup() as group,
        in_memory(script, tools=[deaf.tool()], clock=clock, settings=settings) as runtime,
    ):
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        group.create_task(let_go(deaf, clock))
    async with in_memory(["I do not know"], tools=[deaf.tool()], settings=settings) as runtime:
        turn = await turn_of(runtime, receipt)
        found = await calls(runtime)

    assert (turn.state, turn.reply, turn.attempts) == (TurnState.DONE, "I do not know", 1)
    assert found == ["unknown"]


async def test_a_stop_ends_the_turn_of_a_deaf_model():
    clock, deaf = ManualClock(), Deaf()
    async with in_memory(DeafModel(deaf, ["free"]), clock=clock) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        await runtime.stop()
        await let_go(deaf, clock)
        turn = await turn_of(runtime, receipt)
        after = await turn_of(runtime, await runtime.send("and now?"))

    assert turn.state is TurnState.STOPPED
    assert after.reply == "free"
    assert abandoned(runtime, "model") == 1


async def test_the_time_of_a_turn_ends_it_although_its_model_is_deaf():
    clock, deaf = ManualClock(), Deaf()
    agent = Agent(model=DeafModel(deaf, ["free"]), limits=Limits(wall_s=60))
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        clock.advance(60)
        await let_go(deaf, clock)
        turn = await turn_of(runtime, receipt)
        after = await turn_of(runtime, await runtime.send("and now?"))

    assert (turn.state, turn.error_kind) == (TurnState.TIMED_OUT, "limit")
    assert after.reply == "free"


async def test_a_tool_that_returns_after_a_stop_has_its_result_on_record():
    begun = asyncio.Event()

    async def finish() -> str:
        """Finish what was begun, whoever says otherwise."""
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished all the same"
        return "never"

    async with in_memory([says("", call("finish"))], tools=[Tool(finish)]) as runtime:
        receipt = await runtime.send("go on")
        await begun.wait()
        await runtime.stop()
        turn = await turn_of(runtime, receipt)
        found = await calls(runtime)

    assert turn.state is TurnState.STOPPED
    assert found == ["done"]


async def test_a_deaf_model_whose_time_is_over_is_asked_again():
    clock, deaf = ManualClock(), Deaf()
    limits = Limits(first_token_s=3, idle_s=3, wall_s=3_600)
    agent = Agent(model=DeafModel(deaf, ["well"]), limits=limits)
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("go on")
        await deaf.begun.wait()
        clock.advance(3)
        await let_go(deaf, clock)
        left = await wait_for(runtime, "turn.left")
        clock.advance(60)
        turn = await turn_of(runtime, receipt)

    assert left.data["reason"] == "waiting for the model"
    assert (turn.state, turn.reply) == (TurnState.DONE, "well")
    assert abandoned(runtime, "model") == 1
