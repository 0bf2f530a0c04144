"""Time that stands still until it is told to move."""

import asyncio
from collections.abc import Coroutine

import pytest

from wakeful.vocabulary.clock import ManualClock, SystemClock, time_limit, wait_until


async def test_sleepers_wake_when_their_time_has_come_and_in_order():
    clock, woken = ManualClock(now=0), list[int]()

    async def sleep(until: int) -> None:
        await clock.sleep_until(until)
        woken.append(until)

    async with asyncio.TaskGroup() as group:
        for until in (30, 10, 20):
            group.create_task(sleep(until))
        await asyncio.sleep(0)
        assert clock.next_wake() == 10
        clock.advance(0.02)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert woken == [10, 20]
        clock.advance(0.01)

    assert woken == [10, 20, 30]
    assert clock.next_wake() is None


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


async def test_a_jump_of_the_wall_clock_wakes_those_it_passes():
    clock = ManualClock(now=0)

    async with asyncio.TaskGroup() as group:
        group.create_task(clock.sleep_until(500))
        await asyncio.sleep(0)
        clock.jump_to(1000)

    assert (clock.now(), clock.monotonic()) == (1000, 0)


async def test_the_machines_clock_moves_and_sleeps_no_shorter_than_told():
    clock = SystemClock()
    start = clock.now()
    await clock.sleep_until(start + 3)

    assert clock.now() >= start + 3
    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.parametrize("until", [0, -5])
async def test_the_past_needs_no_waiting(until: int):
    await SystemClock().sleep_until(until)
    await ManualClock(now=5).sleep_until(until)
