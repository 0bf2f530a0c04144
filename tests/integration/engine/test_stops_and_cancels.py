"""What a stop, a time limit or a stray cancellation leaves behind: facts, once, and a free lane."""

import asyncio

from tests.integration.engine.looking import shown, turn_of
from tests.integration.engine.stages import Hold, OnCue, cycles
from wakeful.models.model import Request
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, in_memory, operator_draft, says
from wakeful.tools.tool import tool
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.entry import AssistantBody
from wakeful.vocabulary.kinds import Kind

MAIN = "agent:main:main"


async def test_a_stop_after_half_an_emoji_keeps_what_can_be_stored():
    pause = Pause("half \ud83d")
    model = Scripted([pause, "next"])
    async with in_memory(model) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await runtime.stop()
        turn = await turn_of(runtime, receipt)
        await turn_of(runtime, await runtime.send("two"))
        said = [entry.content() for entry in await runtime.entries()][1]

    assert turn.state is TurnState.STOPPED
    assert isinstance(said, AssistantBody)
    assert said.message.text == "half \ufffd"
    assert [line for line in shown(model.requests[1]) if line.startswith("assistant")] == []


async def test_a_reply_whose_commit_a_stop_overtakes_is_written_once():
    hold = Hold()

    @tool(effect="ledger")
    def note() -> str:
        """Note."""
        return "noted"

    model = OnCue([says("let me note that", call("note")), "never said"])
    async with in_memory(model, tools=[note]) as runtime, asyncio.TaskGroup() as group:
        receipt = await runtime.send("go")
        await model.asked.wait()
        hold.start(runtime, group)
        await hold.begun()
        model.cue.set()
        await cycles()
        group.create_task(runtime.stop())
        await cycles()
        hold.end()
        turn = await turn_of(runtime, receipt)
        bodies = [entry.content() for entry in await runtime.entries()]

    said = [body.message.text for body in bodies if isinstance(body, AssistantBody)]
    assert turn.state is TurnState.STOPPED
    assert said == ["let me note that"]


async def test_a_tool_that_raises_a_cancellation_has_failed_and_runs_once():
    runs: list[str] = []

    @tool(effect="read")
    async def broken() -> str:
        """Break."""
        runs.append("run")
        raise asyncio.CancelledError

    model = Scripted([says("", call("broken")), "I see"])
    async with in_memory(model, tools=[broken]) as runtime:
        turn = await turn_of(runtime, await runtime.send("go"))

    assert turn.reply == "I see"
    assert shown(model.requests[1])[-1] == "tool: CancelledError: "
    assert runs == ["run"]


async def test_a_model_that_raises_a_cancellation_fails_its_turn_and_no_other():
    def line(request: Request) -> str:
        if len(request.messages) == 1:
            raise asyncio.CancelledError
        return "fine"

    model = Scripted(line)
    async with in_memory(model) as runtime:
        turn = await turn_of(runtime, await runtime.send("go"))
        again = await turn_of(runtime, await runtime.send("and now?"))

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert again.reply == "fine"
    assert len(model.requests) == 2


async def test_an_effect_that_timed_out_is_unknown_in_the_ledger():
    clock = ManualClock()
    inside = asyncio.Event()

    @tool(effect="effect", timeout_s=5)
    async def hang() -> str:
        """Hang."""
        inside.set()
        await asyncio.Event().wait()
        return "never"

    async with in_memory([says("", call("hang")), "done"], tools=[hang], clock=clock) as runtime:
        receipt = await runtime.send("go")
        await inside.wait()
        clock.advance(6)
        turn = await turn_of(runtime, receipt)
        rows = await runtime.store.read("SELECT state FROM tool_calls")

    assert turn.reply == "done"
    assert [row[0] for row in rows] == ["unknown"]


async def test_an_automation_out_of_time_names_its_own_limit():
    clock, pause = ManualClock(), Pause("busy")
    async with in_memory([pause], clock=clock) as runtime:
        receipt = await runtime.accept(operator_draft(MAIN, text="daily", kind=Kind.AUTOMATION))
        await pause.reached.wait()
        clock.advance(1801)
        turn = await turn_of(runtime, receipt)

    assert turn.state is TurnState.TIMED_OUT
    assert turn.reply == "I ran out of time: one turn may take 1800 seconds."
