"""A lane is never left for dead: whatever held it up, it goes on by itself, and nothing spins."""

import asyncio
from pathlib import Path

from tests.integration.engine.looking import kinds, states, turn_of
from tests.integration.engine.stages import CountingClock, Hold, cycles, rounds
from wakeful.broker import lane_rows
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Pause, Scripted, in_memory, operator_draft, wait_for
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.stimulus import Draft, Outcome

MAIN = "agent:main:main"


def fill_up(tx: Tx) -> None:
    """Let the database grow no more, as on a disk that is full."""
    ((pages,),) = tx.all("PRAGMA page_count")
    tx.all(f"PRAGMA max_page_count = {pages}")


def make_room(tx: Tx) -> None:
    tx.all("PRAGMA max_page_count = 1000000")


def job(text: str, not_before: int) -> Draft:
    return operator_draft(session_key=MAIN, text=text, kind=Kind.AUTOMATION, not_before=not_before)


async def test_a_full_disk_in_mid_turn_holds_a_lane_up_only_while_it_is_full():
    clock = CountingClock()
    pause = Pause("too long to be stored yet " * 10_000)
    async with in_memory([pause], clock=clock) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await runtime.store.transact(fill_up)
        pause.go_on.set()
        await clock.asleep.wait()
        await runtime.store.transact(make_room)
        clock.advance(1)
        turn = await turn_of(runtime, receipt)

    assert (turn.state, turn.reply) == (TurnState.DONE, pause.text)  # kept, and paid for once


async def test_a_stop_reaches_a_turn_whose_lane_waits_for_a_full_disk():
    clock = CountingClock()
    pause = Pause("too long to be stored " * 10_000)
    async with in_memory([pause], clock=clock) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await runtime.store.transact(fill_up)
        pause.go_on.set()
        await clock.asleep.wait()
        await runtime.store.transact(make_room)
        await runtime.stop()
        clock.advance(1)
        turn = await turn_of(runtime, receipt)

    assert turn.state is TurnState.STOPPED


async def test_an_opening_that_a_stopping_process_did_not_hear_of_costs_no_attempt(tmp_path: Path):
    hold = Hold()
    settings = Settings(home=tmp_path, drain_s=0)
    async with (
        asyncio.TaskGroup() as group,
        in_memory(["warmed up"], settings=settings) as runtime,
    ):
        await turn_of(runtime, await runtime.send("begin"))
        unlisten = runtime.store.listen(lane_rows.READY, lambda _: hold.start(runtime, group))
        receipt = await runtime.send("go")
        await hold.begun()
        unlisten()
        await cycles()  # the lane asks for its opening, which cannot be committed yet
        group.create_task(hold.end_soon())

    async with in_memory(["done"], settings=settings) as runtime:
        turn = await turn_of(runtime, receipt)
        seen = [kind for kind in await kinds(runtime) if kind.startswith("turn.")]

    assert seen[2:] == ["turn.started", "turn.resumed", "turn.finished"]
    assert (turn.reply, turn.attempts) == ("done", 1)


async def test_many_stimuli_of_the_future_do_not_hide_one_that_is_due():
    async with in_memory(Scripted(lambda _: "hello")) as runtime:
        later = runtime.clock.now() + 3_600_000
        await asyncio.gather(*(runtime.accept(job(f"{n}", later)) for n in range(200)))
        turn = await turn_of(runtime, await runtime.send("hi"))

    assert turn.reply == "hello"


async def test_a_halted_lane_parks_all_that_waits_in_it_and_rests():
    clock = CountingClock()
    async with in_memory([], clock=clock) as runtime:
        soon = clock.now() + 1000
        receipts = [await runtime.accept(job(f"{n}", soon)) for n in range(201)]
        await runtime.halt()
        clock.advance(2)
        await wait_for(
            runtime, "stimulus.parked", lambda e: e.stimulus_id == receipts[-1].stimulus_id
        )
        await rounds(runtime)
        waits = clock.waits
        await rounds(runtime)
        waited = clock.waits - waits
        found = set(await states(runtime))

    assert found == {"parked"}
    assert waited == 0


async def test_now_ends_a_turn_that_waits_for_its_model():
    model = Scripted([Transient("busy", retry_after_s=3600), "urgent done", "old done"])
    async with in_memory(model) as runtime:
        old = await runtime.send("old")
        await wait_for(runtime, "turn.left")
        urgent = await runtime.send("urgent", priority="now")
        replies = [(await turn_of(runtime, receipt)).reply for receipt in (urgent, old)]

    assert replies == ["urgent done", "old done"]


async def test_interrupt_ends_a_turn_that_waits_for_its_model():
    model = Scripted([Transient("busy", retry_after_s=3600), "fine"])
    async with in_memory(model) as runtime:
        old = await runtime.send("old")
        await wait_for(runtime, "turn.left")
        new = await runtime.send("never mind", mode="interrupt")
        turns = [await turn_of(runtime, receipt) for receipt in (old, new)]

    assert [turn.state for turn in turns] == [TurnState.SUPERSEDED, TurnState.DONE]


async def test_the_turn_of_an_agent_that_is_gone_can_be_stopped(tmp_path: Path):
    clock = ManualClock()
    gone = Agent("gone", model=Scripted([Transient("busy", retry_after_s=1000)]))
    stays = Agent("main", model=Scripted([]))
    async with Runtime(home=tmp_path, clock=clock, agents=[gone, stays]) as runtime:
        receipt = await runtime.send("hello", session="agent:gone:main")
        await wait_for(runtime, "turn.left")

    async with Runtime(home=tmp_path, clock=clock, agents=[stays]) as runtime:
        await runtime.stop("agent:gone:main")
        turn = await turn_of(runtime, receipt)
        found = await states(runtime)

    assert turn.state is TurnState.STOPPED
    assert found == ["cancelled"]


async def test_a_debounce_that_is_switched_off_lets_go_what_waited_for_it():
    clock = ManualClock()
    settings = Settings(queue=QueueOverrides(debounce_ms=60_000, debounce_max_ms=60_000))
    async with in_memory(["at once"], clock=clock, settings=settings) as runtime:
        receipt = await runtime.send("hello")
        await runtime.set_queue("main", QueueOverrides(debounce_ms=0))
        turn = await turn_of(runtime, receipt)

    assert receipt.outcome is Outcome.DEBOUNCING
    assert turn.reply == "at once"


async def test_a_debounce_window_ends_with_the_messages_that_a_stop_cancelled():
    clock = ManualClock()
    settings = Settings(queue=QueueOverrides(debounce_ms=1000))
    async with in_memory(Scripted(lambda _: "hi"), clock=clock, settings=settings) as runtime:
        await runtime.send("one")
        await runtime.stop()
        clock.advance(3600)
        two = await runtime.send("two")
        other = operator_draft("agent:main:dm:ann", text="x", kind=Kind.A2A)
        await turn_of(runtime, await runtime.accept(other))
        before = await states(runtime)
        clock.advance(1)
        await turn_of(runtime, two)

    assert two.outcome is Outcome.DEBOUNCING
    assert before == ["cancelled", "pending", "done"]


async def test_a_message_after_a_stop_has_the_debounce_window_to_itself():
    clock = ManualClock()
    settings = Settings(queue=QueueOverrides(debounce_ms=1000, debounce_max_ms=1500))
    async with in_memory(["hi"], clock=clock, settings=settings) as runtime:
        await runtime.send("one")
        await runtime.stop()
        clock.advance(0.9)
        two = await runtime.send("two")
        (row,) = await runtime.store.read("SELECT ready_at FROM lanes")
        due_at = clock.now() + 1000
        clock.advance(1)
        turn = await turn_of(runtime, two)

    assert row[0] == due_at
    assert turn.opened_at == due_at
