"""An interrupt that meets a commit of the turn it ends."""

import asyncio
import threading
from collections.abc import AsyncIterator

from wakeful.models.model import Delta, Reply, Request
from wakeful.runtime import Runtime
from wakeful.testing.kit import call, in_memory, says, wait_for
from wakeful.tools.tool import Effect, LedgerContext, Tool
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import State

CYCLES = 20  # of the event loop, until everything that is ready has run


async def test_a_result_whose_commit_a_stop_overtakes_is_written_once() -> None:
    release = threading.Event()
    ran = asyncio.Event()

    async def look() -> str:
        """Look, while the writer is kept busy so that what follows shares a group."""
        background.create_task(runtime.store.transact(lambda _: release.wait(5)))
        await cycles()
        ran.set()
        return "seen"

    script = [says("", call("look", "c1")), "never said", "and again"]
    async with (
        in_memory(script, tools=[Tool(look, effect=Effect.READ)]) as runtime,
        asyncio.TaskGroup() as background,
    ):
        receipt = await runtime.send("look around")
        await ran.wait()
        await cycles()
        stopping = background.create_task(runtime.stop())
        await cycles()
        release.set()
        stopped = await stopping
        turn = await runtime.wait(receipt)

        results = await tool_results(runtime)

    assert turn is not None
    assert turn.state is TurnState.STOPPED
    assert stopped.turn_id == turn.id
    assert results == 1


async def test_interrupted_work_does_not_join_the_turn_that_interrupted_it() -> None:
    arrived: asyncio.Queue[str] = asyncio.Queue()
    may_go_on = asyncio.Event()

    async def look() -> str:
        """Look, slowly."""
        await arrived.put("looking")
        await may_go_on.wait()
        return "seen"

    script = [
        says("", call("look", "c1")),
        says("", call("look", "c2")),
        "the urgent answer",
        "the other answer",
    ]
    async with in_memory(script, tools=[Tool(look, effect=Effect.READ)]) as runtime:
        first = await runtime.send("look around")
        await arrived.get()
        urgent = await runtime.send("look here first", priority="now")
        await arrived.get()
        may_go_on.set()
        urgent_turn = await runtime.wait(urgent)
        first_turn = await runtime.wait(first)

        rows = await runtime.store.read("SELECT id, state FROM stimuli")

    assert urgent_turn is not None
    assert first_turn is not None
    assert urgent_turn.reply == "the urgent answer"
    assert first_turn.reply == "the other answer"
    assert {row[1] for row in rows} == {State.DONE.value}


async def test_no_tool_begins_after_its_stop_was_acknowledged() -> None:
    happened: list[str] = []

    async def look() -> str:
        """Look."""
        happened.append("looked")
        return "seen"

    async def stop() -> None:
        await runtime.stop()
        happened.append("stopped")

    class Overtaken:
        """Answers, and has the stop commit right after the answer, before anybody is told."""

        name = "overtaken"

        async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
            yield says("", call("look", "c1"), call("look", "c2"))
            loop = asyncio.get_running_loop()
            loop.call_soon(hold)
            background.create_task(stop())
            loop.call_soon(hold)

    async with (
        in_memory(Overtaken(), tools=[Tool(look, effect=Effect.READ)]) as runtime,
        asyncio.TaskGroup() as background,
    ):
        turn = await runtime.wait(await runtime.send("look around"))

    assert turn is not None
    assert turn.state is TurnState.STOPPED
    assert happened[-1] == "stopped"


async def test_a_ledger_tool_that_fails_as_a_turn_goes_on_does_not_keep_it_from_going_on() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    def stumble(context: LedgerContext) -> str:
        """Fail inside the commit."""
        raise RuntimeError("stumbled")

    class Stumbling:
        """Calls the tool that fails, then says what it was told."""

        name = "stumbling"

        async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
            asked.set()
            await may_answer.wait()
            last = request.messages[-1]
            is_told = isinstance(last, ToolMessage)
            yield says(last.text) if is_told else says("", call("stumble", "c1"))

    tool = Tool(stumble, effect=Effect.LEDGER)
    async with in_memory(Stumbling(), tools=[tool]) as runtime:
        receipt = await runtime.send("stumble")
        await asked.wait()
        await runtime.halt()
        may_answer.set()
        await wait_for(runtime, "turn.left")

        await runtime.resume()
        turn = await runtime.wait(receipt, timeout_s=5)

    assert turn is not None
    assert turn.state is TurnState.DONE
    assert turn.reply == "RuntimeError: stumbled"


def hold() -> None:
    """Keep the event loop busy while the writer commits."""
    threading.Event().wait(0.05)


async def cycles() -> None:
    for _ in range(CYCLES):
        await asyncio.sleep(0)


async def tool_results(runtime: Runtime) -> int:
    rows = await runtime.store.read("SELECT body FROM entries WHERE kind = 'message'")
    return sum('"type":"tool"' in row[0] for row in rows)
