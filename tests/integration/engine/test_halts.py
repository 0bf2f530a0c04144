"""What a halt holds back, what it lets end, and what goes on when it is lifted."""

import asyncio

from tests.integration.engine.looking import kinds, states, turn_of
from tests.integration.engine.stages import Gate
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import (
    ManualClock,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.tools.tool import ToolResult, tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Trust

MAIN = "agent:main:main"
DAY_MS = 86_400_000


async def test_resuming_one_scope_leaves_parked_what_another_scope_halts():
    agents = [Agent(name, model=Scripted(lambda _: "hi")) for name in ("main", "scout")]
    async with Runtime(agents=agents) as runtime:
        await runtime.halt("main")
        await runtime.halt()
        held = [await runtime.send("x", session=f"dm:{n}") for n in range(3)]
        free = await runtime.send("x", session="agent:scout:main")
        await runtime.resume()
        await turn_of(runtime, free)
        between = await states(runtime)
        freed = (await kinds(runtime)).count("stimulus.pending")
        await runtime.resume("main")
        turns = [await turn_of(runtime, receipt) for receipt in held]

    assert between == ["parked", "parked", "parked", "done"]
    assert freed == 1
    assert [turn.reply for turn in turns] == ["hi", "hi", "hi"]


async def test_resuming_one_scope_leaves_open_the_turn_that_another_scope_halts():
    gate = Gate()
    model = Scripted([says("", call("gate")), "done"])
    async with in_memory(model, tools=[gate.tool]) as runtime:
        receipt = await runtime.send("go")
        await gate.entered.wait()
        await runtime.halt("main")
        await runtime.halt()
        gate.opened.set()
        await wait_for(runtime, "turn.left")
        await runtime.resume()
        between = await states(runtime)
        asked = len(model.requests)
        await runtime.resume("main")
        turn = await turn_of(runtime, receipt)

    assert (between, asked) == (["claimed"], 1)
    assert turn.reply == "done"


async def test_what_may_not_start_before_tomorrow_does_not_start_when_a_halt_is_lifted():
    clock = ManualClock()
    tomorrow = clock.now() + DAY_MS
    async with in_memory(Scripted(lambda _: "hi"), clock=clock) as runtime:
        await runtime.halt()
        job = await runtime.accept(
            operator_draft(MAIN, text="later", kind=Kind.AUTOMATION, not_before=tomorrow)
        )
        await runtime.resume()
        await turn_of(runtime, await runtime.send("x", session="dm:ann"))
        before = await states(runtime)
        clock.advance(86_400)
        turn = await turn_of(runtime, job)

    assert before == ["pending", "done"]
    assert turn.opened_at == tomorrow


async def test_a_tick_that_waited_when_the_halt_came_is_suppressed():
    clock = ManualClock()
    async with in_memory([], clock=clock) as runtime:
        await runtime.accept(
            operator_draft(MAIN, text="tick", kind=Kind.TICK, not_before=clock.now() + 1000)
        )
        await runtime.halt()
        clock.advance(2)
        event = await wait_for(runtime, "stimulus.suppressed")
        found = await states(runtime)

    assert event.data["reason"] == "halted"
    assert found == ["suppressed"]


async def test_what_a_resume_lets_go_is_told_as_pending_again():
    async with in_memory(["hi"]) as runtime:
        await runtime.halt()
        receipt = await runtime.send("go")
        await runtime.resume()
        event = await wait_for(runtime, "stimulus.pending")
        await turn_of(runtime, receipt)

    assert event.stimulus_id == receipt.stimulus_id
    assert event.data["reason"] == "resumed"


async def test_messages_parked_by_a_halt_count_against_the_cap():
    settings = Settings(queue=QueueOverrides(cap=3))
    async with in_memory([], settings=settings) as runtime:
        await runtime.halt()
        for number in range(5):
            await runtime.send(f"{number}")
        found = await states(runtime)

    assert found == ["suppressed", "suppressed", "parked", "parked", "parked"]


async def test_a_storm_is_cut_while_everything_is_halted_too():
    async with in_memory(Scripted(lambda _: "hi")) as runtime:
        await runtime.halt()
        hook = Draft(
            session_key=MAIN,
            owner=OPERATOR,
            text="x",
            kind=Kind.WEBHOOK,
            source="hook",
            trust=Trust.EXTERNAL,
        )
        receipts = [await runtime.accept(hook) for _ in range(20)]

    outcomes = [receipt.outcome for receipt in receipts]
    assert outcomes == [Outcome.PARKED] * 8 + [Outcome.HELD] * 12


async def test_a_halt_is_no_way_around_the_loop_guard():
    async with in_memory(Scripted(lambda _: "hi")) as runtime:
        await runtime.halt()
        ping = operator_draft(
            session_key=MAIN, text="x", kind=Kind.SUBAGENT_MESSAGE, depth=99, root_id="st_root"
        )
        receipt = await runtime.accept(ping)
        notices = (await kinds(runtime)).count("loop.cut")

    assert (receipt.outcome, receipt.reason) == (Outcome.SUPPRESSED, "loop")
    assert notices == 1


async def test_a_turn_with_nothing_left_to_do_ends_while_halted():
    gate = Gate()

    @tool(effect="effect")
    async def rest() -> ToolResult:
        """Rest."""
        return ToolResult(text="resting", ends_turn=True)

    model = Scripted([says("good night", call("rest"), call("gate"))])
    async with in_memory(model, tools=[rest, gate.tool]) as runtime:
        receipt = await runtime.send("go")
        await gate.entered.wait()
        await runtime.halt()
        gate.opened.set()
        turn = await turn_of(runtime, receipt)

    assert (turn.state, turn.reply) == (TurnState.DONE, "good night")
    assert len(model.requests) == 1


async def test_a_result_that_ends_the_turn_still_ends_it_after_a_resume():
    inside, go_on = asyncio.Event(), asyncio.Event()
    gate = Gate()
    gate.opened.set()

    @tool(effect="effect")
    async def rest() -> ToolResult:
        """Rest."""
        inside.set()
        await go_on.wait()
        return ToolResult(text="resting", ends_turn=True)

    model = Scripted([says("good night", call("rest"), call("gate"))])
    async with in_memory(model, tools=[rest, gate.tool]) as runtime:
        receipt = await runtime.send("go")
        await inside.wait()
        await runtime.halt()
        go_on.set()
        await wait_for(runtime, "turn.left")
        await runtime.resume()
        turn = await turn_of(runtime, receipt)

    assert (turn.state, turn.reply) == (TurnState.DONE, "good night")
    assert (len(model.requests), gate.passed) == (1, 1)
