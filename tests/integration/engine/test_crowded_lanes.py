"""Lanes in which much waits: all of it is stopped, none of it hides what is due."""

import asyncio

import pytest

from tests.integration.engine.looking import shown, turn_of
from tests.integration.engine.small import LONG, Small, runtime_with
from tests.integration.engine.stages import CountingClock, rounds
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, Pause, Scripted, in_memory, operator_draft, wait_for
from wakeful.vocabulary.errors import Overloaded
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Trust

MAIN = "agent:main:main"
MANY = 1_300  # more than one write cancels, twice over


async def count(runtime: Runtime, state: str) -> int:
    rows = await runtime.store.read(
        "SELECT COUNT(*) FROM stimuli WHERE state = :state", state=state
    )
    return rows[0][0]


async def test_a_stop_leaves_nothing_of_what_was_said_before_it():
    pause = Pause("working")
    model = Scripted([pause, "after the stop"])
    settings = Settings(queue=QueueOverrides(mode=Mode.QUEUE, cap=10_000))
    async with in_memory(model, settings=settings) as runtime:
        await runtime.send("work")
        await pause.reached.wait()
        async with asyncio.TaskGroup() as group:
            for number in range(MANY):
                group.create_task(runtime.send(f"{number}"))
        stopped = await runtime.stop()
        asked_by_then = len(model.requests)
        waiting = await count(runtime, "pending")
        last = await turn_of(runtime, await runtime.send("hello?"))
        asked = len(model.requests)

    assert len(stopped.cancelled) == MANY
    assert (waiting, asked_by_then) == (0, 1)
    assert (last.reply, asked) == ("after the stop", 2)


async def test_a_stop_that_is_said_leaves_nothing_either_and_is_done_once():
    pause = Pause("working")
    model = Scripted([pause, "after the stop"])
    settings = Settings(queue=QueueOverrides(mode=Mode.QUEUE, cap=10_000))
    async with in_memory(model, settings=settings) as runtime:
        first = await turn_after(runtime, pause)
        async with asyncio.TaskGroup() as group:
            for number in range(MANY):
                group.create_task(runtime.send(f"{number}"))
        stopped = await runtime.send("/stop", dedup_key="k")
        waiting = await count(runtime, "pending")
        last = await runtime.send("hello?", mode="queue")
        again = await runtime.send("/stop", dedup_key="k")
        turn = await turn_of(runtime, last)

    assert stopped.reply == f"Stopped the turn {first}. Cancelled {MANY} waiting messages."
    assert waiting == 0
    assert again == stopped
    assert turn.reply == "after the stop"


async def turn_after(runtime: Runtime, pause: Pause) -> str:
    await runtime.send("work")
    await pause.reached.wait()
    turn_id = (await runtime.lane()).turn_id
    assert turn_id is not None
    return turn_id


async def test_a_message_that_was_folded_away_while_it_waited_is_shown_again():
    urgent = Pause("busy with the first")
    model = Small([urgent, "urgent done", "first done"])
    async with runtime_with(model) as runtime:
        first = await runtime.send("water the garden")
        await urgent.reached.wait()
        second = await runtime.send(LONG * 3, priority="now")
        urgent.go_on.set()
        await turn_of(runtime, second)
        await turn_of(runtime, first)
        compacted = await runtime.store.read(
            "SELECT context_from FROM sessions WHERE key NOT LIKE '%:activity'"
        )

    assert compacted[0][0] > 0
    assert "water the garden" in "\n".join(shown(model.requests[-1]))


async def test_a_message_that_its_own_turn_folds_away_is_shown_again():
    """A turn that takes up interrupted work only names it, and text from outside not even that."""
    urgent = Pause("busy with the first")
    model = Small([urgent, LONG * 3, "first done"])
    outside = Draft(
        session_key=MAIN,
        owner=OPERATOR,
        text="water the garden",
        trust=Trust.EXTERNAL,
        source="them",
    )
    async with runtime_with(model) as runtime:
        first = await runtime.accept(outside)
        await urgent.reached.wait()
        second = await runtime.send("quickly", priority="now")
        urgent.go_on.set()
        await turn_of(runtime, second)
        turn = await turn_of(runtime, first)

    assert turn.reply == "first done"
    assert model.summed_up
    (_, _, last) = model.replies_asked()
    assert "water the garden" in "\n".join(shown(last))


async def test_what_is_due_is_not_hidden_by_what_waits_for_a_window_and_nothing_spins():
    clock = CountingClock()
    window = QueueOverrides(debounce_ms=60_000, debounce_max_ms=3_600_000, cap=10_000)
    model = Scripted(lambda _: "due")
    async with in_memory(model, clock=clock, settings=Settings(queue=window)) as runtime:
        async with asyncio.TaskGroup() as group:
            for number in range(250):
                group.create_task(runtime.send(f"{number}"))
        job = operator_draft(MAIN, text="daily", kind=Kind.AUTOMATION)
        turn = await turn_of(runtime, await runtime.accept(job))
        await rounds(runtime)
        waits = clock.waits
        await rounds(runtime)
        waited = clock.waits - waits
        waiting = await count(runtime, "pending")

    assert turn.reply == "due"
    assert waiting == 250
    assert waited == 0


@pytest.mark.parametrize(
    "queue",
    [
        QueueOverrides(debounce_ms=1000),
        QueueOverrides(mode=Mode.QUEUE),
        QueueOverrides(debounce_ms=0),
    ],
)
async def test_what_waits_for_a_window_follows_settings_that_end_it_sooner(
    queue: QueueOverrides,
):
    clock = ManualClock()
    settings = Settings(queue=QueueOverrides(debounce_ms=30_000, debounce_max_ms=30_000))
    async with in_memory(Scripted(["well"]), clock=clock, settings=settings) as runtime:
        receipt = await runtime.send("hi")
        await runtime.set_queue("main", queue)
        clock.advance(1)
        turn = await turn_of(runtime, receipt)

    assert receipt.outcome is Outcome.DEBOUNCING
    assert turn.reply == "well"


async def test_settings_that_are_taken_back_hold_for_what_waits():
    clock = ManualClock()
    async with in_memory(Scripted(["one", "well"]), clock=clock) as runtime:
        await turn_of(runtime, await runtime.send("make the session"))
        await runtime.set_queue("main", QueueOverrides(debounce_ms=30_000))
        receipt = await runtime.send("hi")
        await runtime.set_queue("main", QueueOverrides())
        turn = await turn_of(runtime, receipt)

    assert receipt.outcome is Outcome.DEBOUNCING
    assert turn.reply == "well"


async def test_a_resume_does_not_ask_a_model_that_wants_to_be_left_alone():
    clock = ManualClock()
    asked: list[Request] = []

    def busy(request: Request) -> Overloaded | str:
        asked.append(request)
        return Overloaded("busy", retry_after_s=3600) if len(asked) == 1 else "well"

    async with in_memory(Scripted(busy), clock=clock) as runtime:
        receipt = await runtime.send("hi")
        await wait_for(runtime, "turn.left")
        for _ in range(6):
            await runtime.halt()
            await runtime.send("more", mode="queue")
            await runtime.resume()
        asked_early = len(asked)
        await runtime.stop()
        clock.advance(3600)
        turn = await turn_of(runtime, receipt)

    assert asked_early == 1
    assert turn.attempts <= 1
