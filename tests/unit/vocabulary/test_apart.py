"""Code that is not ours ends when it is told to, whether it wants to or not."""

import asyncio
import logging

import pytest

from wakeful.vocabulary.apart import GRACE_S, Apart
from wakeful.vocabulary.clock import ManualClock


class Stubborn:
    """A call that goes on when it is told to end."""

    def __init__(self, swallows: type[BaseException] = asyncio.CancelledError) -> None:
        self.begun = asyncio.Event()
        self.told = asyncio.Event()
        self.times_told = 0
        self._swallows = swallows

    async def run(self) -> None:
        while True:
            try:
                self.begun.set()
                await asyncio.Event().wait()
            except self._swallows:
                self.times_told += 1
                self.told.set()


async def soon() -> str:
    await ManualClock().sleep(0)
    return "done"


async def test_a_result_comes_through():
    assert await Apart(soon(), name="call", clock=ManualClock()).result() == "done"


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError(), asyncio.CancelledError()])
async def test_an_error_comes_through_as_it_is(error: BaseException):
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await Apart(fail(), name="call", clock=ManualClock()).result()

    assert raised.value is error


async def test_a_call_has_a_task_of_its_own():
    async def leave() -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task.get_name() == "call"
        task.cancel()
        await ManualClock().sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await Apart(leave(), name="call", clock=ManualClock()).result()

    own = asyncio.current_task()
    assert own is not None
    assert own.cancelling() == 0


async def test_a_call_that_ends_when_told_is_not_abandoned():
    begun, tidied = asyncio.Event(), asyncio.Event()

    async def tidy() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await ManualClock().sleep(0)
            tidied.set()

    apart = Apart(tidy(), name="call", clock=ManualClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(apart.result())
        await begun.wait()
        task.cancel()

    assert task.cancelled()
    assert tidied.is_set()
    assert not apart.is_abandoned


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("swallows", [asyncio.CancelledError, BaseException])
async def test_a_call_that_goes_on_is_abandoned_after_a_grace(
    swallows: type[BaseException], caplog: pytest.LogCaptureFixture
):
    clock, stubborn = ManualClock(), Stubborn(swallows)
    apart = Apart(stubborn.run(), name="the call", clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(apart.result())
        await stubborn.begun.wait()
        task.cancel()
        await stubborn.told.wait()
        clock.advance(GRACE_S - 0.01)
        await clock.sleep(0)
        assert not task.done()
        with caplog.at_level(logging.WARNING):
            clock.advance(0.01)
            await asyncio.wait([task])

    assert task.cancelled()
    assert apart.is_abandoned
    assert "the call did not end when it was told to" in caplog.text


async def test_nothing_of_an_abandoned_call_goes_on():
    clock, stubborn = ManualClock(), Stubborn()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(Apart(stubborn.run(), name="call", clock=clock).result())
        await stubborn.begun.wait()
        task.cancel()
        await stubborn.told.wait()
        clock.advance(GRACE_S)
        await asyncio.wait([task])

    assert stubborn.times_told == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_returns_after_it_was_told_to_end_has_a_value():
    begun = asyncio.Event()

    async def late() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    apart = Apart(late(), name="call", clock=ManualClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(apart.result())
        await begun.wait()
        task.cancel()

    assert task.cancelled()
    assert apart.value == "late"


async def test_nothing_begins_for_somebody_who_was_told_to_end():
    async def act() -> None:
        raise AssertionError("it began")

    async def begin() -> None:
        own = asyncio.current_task()
        assert own is not None
        own.cancel()  # delivered at the next await, where the call is waited for
        await Apart(act(), name="call", clock=ManualClock()).result()

    async def begin_for(owner: asyncio.Task[object]) -> None:
        owner.cancel()
        await Apart(act(), name="call", clock=ManualClock(), owner=owner).result()

    async with asyncio.TaskGroup() as group:
        owner = group.create_task(asyncio.Event().wait())
        tasks = [group.create_task(begin()), group.create_task(begin_for(owner))]

    assert all(task.cancelled() for task in tasks)
