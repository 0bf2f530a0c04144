"""What may take seconds is read in turn."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from wakeful.store.database import Row, Store
from wakeful.store.readers import READERS
from wakeful.views.in_turn import AT_ONCE, InTurn
from wakeful.views.usage import UsageBy, UsageView


class Slow:
    """A database that answers when it is told to, and counts who waits for it."""

    def __init__(self) -> None:
        self.asked = asyncio.Semaphore(0)
        self.answers = asyncio.Semaphore(0)
        self.reading = 0
        self.most = 0
        self.done = 0

    async def read(self, _sql: str, **_params: object) -> Sequence[Row]:
        self.reading += 1
        self.most = max(self.most, self.reading)
        self.asked.release()
        await self.answers.acquire()
        self.reading -= 1
        self.done += 1
        return []

    async def answer(self, count: int) -> None:
        """Answer so many, each once it was asked."""
        for _ in range(count):
            await self.asked.acquire()
            self.answers.release()


def slow() -> tuple[Slow, InTurn]:
    store = Slow()
    return store, InTurn(cast("Store", cast("Any", store)))


async def read_all(store: Slow, in_turn: InTurn, viewers: Sequence[str]) -> None:
    async with asyncio.TaskGroup() as group:
        for viewer in viewers:
            group.create_task(in_turn.read(viewer, "SELECT 1"))
        await store.answer(len(viewers))


async def test_a_viewer_reads_one_thing_after_the_other():
    store, in_turn = slow()
    await read_all(store, in_turn, ["somebody"] * 20)

    assert (store.most, store.done) == (1, 20)


async def test_all_viewers_together_leave_readers_to_everybody_else():
    store, in_turn = slow()
    await read_all(store, in_turn, [f"viewer {number}" for number in range(20)])

    assert (store.most, store.done) == (AT_ONCE, 20)
    assert AT_ONCE < READERS


@pytest.mark.parametrize("by", UsageBy)
async def test_sums_of_usage_are_read_in_turn(by: UsageBy):
    store, in_turn = slow()
    view = UsageView(cast("Store", cast("Any", store)), in_turn)
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(view.page(by, None, None, None, 50))
        await store.answer(5)

    assert (store.most, store.done) == (1, 5)
