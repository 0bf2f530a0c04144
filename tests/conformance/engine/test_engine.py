"""One walk over every ledger, on each database."""

import asyncio

import msgspec

from tests.conformance.engine.conftest import SettingsFor
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.testing.kit import Pause, Scripted, call, in_memory, operator_draft, says, wait_for
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.tools.tool import ToolResult, tool
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Outcome

MAIN = "agent:main:main"


async def states(runtime: Runtime) -> list[str]:
    rows = await runtime.store.read("SELECT state FROM stimuli ORDER BY id")
    return [row[0] for row in rows]


async def test_a_message_with_tools_is_answered_and_delivered(settings_for: SettingsFor):
    received: list[Delivery] = []

    async def out(delivery: Delivery) -> None:
        received.append(delivery)

    @tool(effect="read")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    model = Scripted([says("", call("add", a=1, b=2), call("add", call_id="2", a=3, b=4)), "3, 7"])
    runtime = in_memory(model, tools=[add], settings=settings_for(), doors={"out": out})
    async with runtime:
        receipt = await runtime.send("add", route=Route(door="out", address="ann"))
        turn = await runtime.wait(receipt)
        await wait_for(runtime, "delivery.acknowledged")
        rows = await runtime.store.read("SELECT state, attempts FROM deliveries")

    assert turn is not None
    assert (turn.state, turn.reply, turn.tool_calls) == (TurnState.DONE, "3, 7", 2)
    assert [delivery.text for delivery in received] == ["3, 7"]
    assert [tuple(row) for row in rows] == [("acknowledged", 1)]


async def test_queueing_preemption_stop_and_halt_work_alike(settings_for: SettingsFor):
    pauses = [Pause("slow"), Pause("slow again"), Pause("third")]
    model = Scripted([pauses[0], "urgent", pauses[1], pauses[2]])
    async with in_memory(model, settings=settings_for()) as runtime:
        work = await runtime.send("work")
        await pauses[0].reached.wait()
        urgent = await runtime.wait(await runtime.send("urgent", priority="now"))
        await pauses[1].reached.wait()
        queued = await runtime.send("queued", mode="queue")
        await runtime.stop()
        stopped = await runtime.wait(work)
        await runtime.halt("main")
        parked = await runtime.send("parked")
        await runtime.resume("main")
        await pauses[2].reached.wait()
        pauses[2].go_on.set()
        done = await runtime.wait(parked)
        found = await states(runtime)

    assert urgent is not None
    assert stopped is not None
    assert done is not None
    assert (urgent.reply, stopped.state, done.reply) == ("urgent", TurnState.STOPPED, "third")
    assert (queued.outcome, parked.outcome) == (Outcome.QUEUED, Outcome.PARKED)
    assert found == ["cancelled", "done", "cancelled", "done"]


async def test_dedup_caps_and_timers_work_alike(settings_for: SettingsFor):
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for()) as runtime:
        receipts = await asyncio.gather(*(runtime.send("x", dedup_key="k") for _ in range(20)))
        draft = operator_draft(MAIN, text="later", kind=Kind.CALLBACK)
        timer = Timer(
            id="t1",
            due_at=runtime.clock.now() + 20,
            kind="stimulus",
            target=MAIN,
            payload=msgspec.json.encode(draft).decode(),
        )
        await runtime.store.transact(lambda tx: timers.put(tx, timer))
        await wait_for(runtime, "stimulus.done", lambda e: e.stimulus_id != receipts[0].stimulus_id)
        found = await states(runtime)

    assert sum(receipt.outcome is Outcome.DUPLICATE for receipt in receipts) == 19
    assert found == ["done", "done"]


async def test_events_come_in_order_and_can_be_read_again(settings_for: SettingsFor):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        start = await runtime.cursor()
        for number in range(5):
            await runtime.wait(await runtime.send(f"{number}"))
        end = int((await runtime.cursor()).rpartition("-")[2])
        seen: list[int] = []
        async for event in runtime.subscribe(since=start):
            assert event.seq is not None
            seen.append(event.seq)
            if event.seq == end:
                break

    first = int(start.rpartition("-")[2]) + 1
    assert seen == list(range(first, end + 1))


async def test_an_event_is_the_same_live_and_read_again(settings_for: SettingsFor):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        start = await runtime.cursor()
        live: list[Event] = []
        async with asyncio.TaskGroup() as group:
            following = runtime.subscribe(topics=["stimulus.*", "turn.*"])

            async def follow() -> None:
                async for event in following:
                    if event.seq is not None:  # what is only live cannot be read again
                        live.append(event)
                    if event.kind == "turn.finished":
                        return

            group.create_task(follow())
            await runtime.wait(await runtime.send("hello"))
        again: list[Event] = []
        async for event in runtime.subscribe(topics=["stimulus.*", "turn.*"], since=start):
            again.append(event)
            if event.kind == "turn.finished":
                break

    assert live[0].kind == "stimulus.accepted"
    assert live == again  # the time included


async def test_an_effect_cut_off_by_a_stop_is_shown_as_unknown(lasting: SettingsFor):
    entered = asyncio.Event()
    acted: list[str] = []

    @tool(effect="effect")
    async def pay() -> str:
        """Pay."""
        acted.append("begun")
        entered.set()
        await asyncio.Event().wait()
        return "paid"

    async with in_memory(
        [says("", call("pay"))], tools=[pay], settings=lasting(drain_s=0)
    ) as runtime:
        receipt = await runtime.send("pay it")
        await entered.wait()

    model = Scripted(["I am not sure it was paid"])
    async with in_memory(model, tools=[pay], settings=lasting()) as runtime:
        turn = await runtime.wait(receipt)

    assert turn is not None
    assert (turn.reply, turn.attempts) == ("I am not sure it was paid", 1)
    assert acted == ["begun"]
    assert "interrupted, outcome unknown: pay" in str(model.requests[0].messages[-1])


async def test_an_idempotent_call_cut_off_by_a_stop_runs_again_with_the_same_key(
    lasting: SettingsFor,
):
    entered = asyncio.Event()
    attempts: list[int] = []

    @tool(effect="idempotent")
    async def put() -> str:
        """Put."""
        attempts.append(1)
        entered.set()
        if len(attempts) == 1:
            await asyncio.Event().wait()
        return "stored"

    async with in_memory(
        [says("", call("put"))], tools=[put], settings=lasting(drain_s=0)
    ) as runtime:
        receipt = await runtime.send("store it")
        await entered.wait()

    async with in_memory(["stored"], tools=[put], settings=lasting()) as runtime:
        turn = await runtime.wait(receipt)
        rows = await runtime.store.read("SELECT state FROM tool_calls")

    assert turn is not None
    assert turn.reply == "stored"
    assert len(attempts) == 2
    assert [row[0] for row in rows] == ["done"]


async def test_a_question_cut_off_by_a_stop_is_asked_again(lasting: SettingsFor):
    pause = Pause("half an ans")
    async with in_memory([pause], settings=lasting(drain_s=0)) as runtime:
        receipt = await runtime.send("question")
        await pause.reached.wait()

    async with in_memory(["whole answer"], settings=lasting()) as runtime:
        turn = await runtime.wait(receipt)
        asks = await runtime.store.read("SELECT state FROM asks ORDER BY attempt")
        entries = await runtime.entries()

    assert turn is not None
    assert turn.reply == "whole answer"
    assert [row[0] for row in asks] == ["abandoned", "answered"]
    assert len(entries) == 2


async def test_a_garbled_answer_is_asked_for_once_more_whatever_comes_between(
    lasting: SettingsFor,
):
    pause = Pause("half an ans")
    async with in_memory([Garbled("cut"), pause], settings=lasting(drain_s=0)) as runtime:
        receipt = await runtime.send("question")
        await pause.reached.wait()

    async with in_memory([Garbled("cut again")], settings=lasting()) as runtime:
        turn = await runtime.wait(receipt)
        asks = await runtime.store.read("SELECT state FROM asks ORDER BY attempt")

    assert turn is not None
    assert (turn.state, turn.error) == (TurnState.FAILED, "cut again")
    assert [row[0] for row in asks] == ["garbled", "abandoned", "failed"]


async def test_a_tool_that_is_gone_says_so_on_resume(lasting: SettingsFor):
    entered = asyncio.Event()

    @tool(effect="idempotent")
    async def old() -> str:
        """An old tool."""
        entered.set()
        await asyncio.Event().wait()
        return "never"

    async with in_memory(
        [says("", call("old"))], tools=[old], settings=lasting(drain_s=0)
    ) as runtime:
        receipt = await runtime.send("use it")
        await entered.wait()

    model = Scripted(["then not"])
    async with in_memory(model, settings=lasting()) as runtime:
        await runtime.wait(receipt)

    assert "tool no longer available" in str(model.requests[0].messages[-1])


async def test_what_waits_survives_a_restart_in_order(lasting: SettingsFor):
    pause = Pause("never heard")
    async with in_memory([pause], settings=lasting(drain_s=0)) as runtime:
        await runtime.send("1", mode="queue")
        await pause.reached.wait()
        waiting = [await runtime.send(f"{n}", mode="queue") for n in (2, 3)]

    model = Scripted(["one", "two", "three"])
    async with in_memory(model, settings=lasting()) as runtime:
        turns = [await runtime.wait(receipt) for receipt in waiting]

    assert [turn.reply if turn else None for turn in turns] == ["two", "three"]


async def test_a_result_that_ends_the_turn_still_ends_it_after_a_restart(lasting: SettingsFor):
    entered = asyncio.Event()

    @tool(effect="ledger")
    def rest() -> ToolResult:
        """Rest."""
        return ToolResult(text="resting", ends_turn=True)

    @tool(effect="effect")
    async def act() -> str:
        """Act."""
        entered.set()
        await asyncio.Event().wait()
        return "never"

    reply = says("good night", call("rest"), call("act"))
    async with in_memory([reply], tools=[rest, act], settings=lasting(drain_s=0)) as runtime:
        receipt = await runtime.send("sleep well")
        await entered.wait()

    model = Scripted([])
    async with in_memory(model, tools=[rest, act], settings=lasting()) as runtime:
        turn = await runtime.wait(receipt)

    assert turn is not None
    assert (turn.state, turn.reply) == (TurnState.DONE, "good night")
    assert not model.requests
