"""Time that stands still until it is told to move."""

import asyncio
from collections.abc import Coroutine

import pytest

from wakeful.vocabulary.clock import (
    LONGEST_NAP_S,
    ManualClock,
    SystemClock,
    time_limit,
    wait_until,
)


async def test_sleepers_wake_when_their_time_has_come_and_in_order():
    clock, woken = ManualClock(now=0), list[float]()

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (30, 10, 20):
            group.create_task(sleep(seconds))
        await asyncio.sleep(0)
        clock.advance(20)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert woken == [10, 20]
        clock.advance(10)

    assert woken == [10, 20, 30]


async def test_a_time_limit_ends_what_takes_too_long():
    clock = ManualClock()

    async def limited() -> None:
        async with time_limit(clock, 5):
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_swallowing(limited()))
        await asyncio.sleep(0)
        clock.advance(4.9)
        await asyncio.sleep(0)
        assert not task.done()
        clock.advance(0.1)

    assert task.result() == "TimeoutError"


async def _swallowing(work: Coroutine[object, object, None]) -> str:
    try:
        await work
    except TimeoutError as error:
        return type(error).__name__
    return "finished"


async def test_a_time_limit_that_is_not_reached_leaves_nothing_behind():
    clock = ManualClock()
    async with time_limit(clock, 5):
        pass
    clock.advance(10)


async def test_waiting_ends_with_the_event_or_with_the_time():
    clock, event = ManualClock(now=0), asyncio.Event()

    async with asyncio.TaskGroup() as group:
        timed = group.create_task(wait_until(clock, 1000, event))
        await asyncio.sleep(0)
        assert not timed.done()
        clock.advance(1)
    event.set()
    await wait_until(clock, 99_000, event)


async def test_a_jump_ahead_ends_the_waiting_for_an_instant_it_passes():
    clock, event = ManualClock(now=0), asyncio.Event()

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_until(clock, 3_600_000, event))
        await asyncio.sleep(0)
        clock.advance(5)
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.jump_to(4_000_000)
        clock.advance(LONGEST_NAP_S)

    assert clock.now() == 4_000_000 + LONGEST_NAP_S * 1000


async def test_a_jump_back_ends_the_waiting_so_that_everybody_looks_again():
    clock, event = ManualClock(now=10_000_000), asyncio.Event()

    async with asyncio.TaskGroup() as group:
        group.create_task(wait_until(clock, 10_060_000, event))
        await asyncio.sleep(0)
        clock.jump_to(0)
        clock.advance(LONGEST_NAP_S)

    assert event.is_set()


async def test_a_sleep_takes_as_long_as_told_wherever_the_wall_clock_is_moved():
    clock = ManualClock(now=10_000_000)

    async with asyncio.TaskGroup() as group:
        sleeping = group.create_task(clock.sleep(5))
        await asyncio.sleep(0)
        clock.jump_to(20_000_000)
        clock.advance(4)
        await asyncio.sleep(0)
        assert not sleeping.done()
        clock.jump_to(0)
        clock.advance(1)

    assert (clock.now(), clock.monotonic()) == (1000, 5)


async def test_the_machines_clock_moves_and_sleeps_no_shorter_than_told():
    clock = SystemClock()
    start = clock.monotonic()
    await clock.sleep(0.003)

    assert clock.monotonic() >= start + 0.003
    assert clock.now() > 0


@pytest.mark.parametrize("seconds", [0, -5])
async def test_no_time_needs_no_waiting(seconds: int):
    await SystemClock().sleep(seconds)
    await ManualClock(now=5).sleep(seconds)
