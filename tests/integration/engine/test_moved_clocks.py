"""What the engine promises when somebody moves the wall clock while it runs."""

import msgspec
import pytest

from tests.integration.engine.looking import turn_of
from tests.integration.engine.stages import Gate, rounds
from wakeful.models.scripted import Line
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import (
    ManualClock,
    Pause,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.clock import LONGEST_NAP_S
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.route import Route

MAIN = "agent:main:main"
ANN = Route(door="out", address="ann")
HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
JUMPS = pytest.mark.parametrize("jump_ms", [-HOUR_MS, 2 * HOUR_MS, YEAR_MS])


class Grumpy(Scripted):
    """A model that is too busy the first time."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__([Transient("529: overloaded", retry_after_s=5), *lines])


def move(clock: ManualClock, by_ms: int) -> None:
    clock.jump_to(clock.now() + by_ms)


async def pass_naps(runtime: Runtime, clock: ManualClock) -> None:
    """Let everybody who waits look at the clock once."""
    await rounds(runtime)
    clock.advance(LONGEST_NAP_S)
    await rounds(runtime)


async def set_timer(runtime: Runtime, due_at: int, timer_id: str = "tea") -> None:
    draft = operator_draft(MAIN, text="tea is ready", kind=Kind.AUTOMATION)
    payload = msgspec.json.encode(draft).decode()
    timer = Timer(id=timer_id, due_at=due_at, kind="stimulus", target=MAIN, payload=payload)
    await runtime.store.transact(lambda tx: timers.put(tx, timer))


async def fired(runtime: Runtime) -> list[Event]:
    rows = await runtime.store.read(
        "SELECT seq, at, data FROM events WHERE kind = 'timer.fired' ORDER BY seq"
    )
    return [Event(kind="timer.fired", seq=row[0], data=msgspec.json.decode(row[2])) for row in rows]


@JUMPS
async def test_what_waits_behind_a_turn_runs_when_the_turn_has_ended(jump_ms: int):
    clock, pause = ManualClock(), Pause("one")
    async with in_memory([pause, "two"], clock=clock) as runtime:
        first = await runtime.send("first", mode="queue")
        await pause.reached.wait()
        second = await runtime.send("second", mode="queue")
        move(clock, jump_ms)
        await pass_naps(runtime, clock)
        pause.go_on.set()
        replies = [(await turn_of(runtime, receipt)).reply for receipt in (first, second)]

    assert replies == ["one", "two"]


async def test_a_window_that_waits_for_more_words_does_not_wait_for_the_clock():
    clock = ManualClock()
    settings = Settings(queue=QueueOverrides(debounce_ms=500))
    async with in_memory(["hi"], clock=clock, settings=settings) as runtime:
        receipt = await runtime.send("hello")
        move(clock, -HOUR_MS)
        await pass_naps(runtime, clock)
        turn = await turn_of(runtime, receipt)

    assert turn.reply == "hi"


async def test_a_turn_that_waits_for_its_model_does_not_wait_for_the_clock():
    clock = ManualClock()
    async with in_memory(Grumpy(["hi"]), clock=clock) as runtime:
        receipt = await runtime.send("hello")
        await wait_for(runtime, "turn.left")
        move(clock, -HOUR_MS)
        await pass_naps(runtime, clock)
        turn = await turn_of(runtime, receipt)

    assert turn.reply == "hi"


@pytest.mark.parametrize("jump_ms", [2 * HOUR_MS, YEAR_MS])
async def test_a_turn_does_not_run_out_of_time_because_the_clock_was_moved(jump_ms: int):
    clock, gate, pause = ManualClock(), Gate(), Pause("hi")
    model = Scripted([says("", call("gate")), Transient("overloaded", retry_after_s=5), pause])
    async with in_memory(model, tools=[gate.tool], clock=clock) as runtime:
        receipt = await runtime.send("hello")
        await gate.entered.wait()
        move(clock, jump_ms)
        gate.opened.set()
        await wait_for(runtime, "turn.left")
        clock.advance(5)
        await pause.reached.wait()
        clock.advance(1)
        await rounds(runtime)
        pause.go_on.set()
        turn = await turn_of(runtime, receipt)

    assert (turn.state, turn.reply) == (TurnState.DONE, "hi")


async def test_a_delivery_does_not_wait_for_the_clock():
    clock, received = ManualClock(), list[str]()
    errors = [Transient("busy")]

    async def out(delivery: Delivery) -> None:
        if errors:
            raise errors.pop()
        received.append(delivery.text)

    async with in_memory(["hi"], clock=clock, doors={"out": out}) as runtime:
        await turn_of(runtime, await runtime.send("hello", route=ANN))
        await wait_for(runtime, "delivery.retry")
        move(clock, -HOUR_MS)
        await pass_naps(runtime, clock)
        await wait_for(runtime, "delivery.acknowledged")

    assert received == ["hi"]


async def test_a_timer_is_not_early_after_the_clock_was_moved_back():
    clock = ManualClock()
    due_at = clock.now() + 10_000
    async with in_memory(Scripted(lambda _: "poured"), clock=clock) as runtime:
        await set_timer(runtime, due_at)
        await pass_naps(runtime, clock)
        move(clock, -HOUR_MS)
        clock.advance(9)
        await pass_naps(runtime, clock)
        early = await fired(runtime)
        clock.advance(3_600 + 10)
        await wait_for(runtime, "turn.finished")
        on_time = await fired(runtime)

    assert early == []
    assert [(event.data["due_at"], event.data["late_ms"] >= 0) for event in on_time] == [
        (due_at, True)
    ]


@pytest.mark.parametrize("jump_ms", [2 * HOUR_MS, YEAR_MS])
async def test_a_timer_that_a_jump_passes_fires_once_and_says_how_late(jump_ms: int):
    clock = ManualClock()
    due_at = clock.now() + 10_000
    async with in_memory(Scripted(lambda _: "poured"), clock=clock) as runtime:
        await set_timer(runtime, due_at)
        move(clock, jump_ms)
        await pass_naps(runtime, clock)
        await wait_for(runtime, "turn.finished")
        move(clock, -jump_ms)
        clock.advance(60)
        await pass_naps(runtime, clock)
        times = [event.data["late_ms"] for event in await fired(runtime)]

    assert times == [pytest.approx(jump_ms - 10_000, abs=2_000)]


async def test_what_a_storm_counted_counts_no_longer_than_its_window():
    clock = ManualClock()

    async def send(count: int) -> list[str]:
        drafts = [
            operator_draft(MAIN, text="x", kind=Kind.WEBHOOK, source="feed") for _ in range(count)
        ]
        return [(await runtime.accept(draft)).outcome.value for draft in drafts]

    async with in_memory(Scripted(lambda _: "hi"), clock=clock) as runtime:
        await send(9)
        move(clock, -HOUR_MS)
        held = await send(1)
        clock.advance(61)
        later = await send(1)

    assert held == ["held"]
    assert later != ["held"]
