"""A round of a service is repeated until it succeeds, whatever it fails with."""

import asyncio

import pytest

from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import Invariant, StoreBusy, StoreFailed, StoreRefused
from wakeful.vocabulary.retrying import retrying


class Sleepless(ManualClock):
    """A clock whose sleepers wake at once; it notes for how long they meant to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Round:
    """A round that fails with one error after the other, then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)

    async def __call__(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "done"


@pytest.mark.parametrize(
    "error", [StoreBusy(), StoreRefused(), Invariant(), OSError(24, "too many"), ImportError("x")]
)
async def test_nothing_that_may_pass_ends_a_service(error: Exception):
    assert await retrying(Sleepless(), "sweeping", Round(error, error)) == "done"


async def test_a_store_that_failed_ends_it():
    with pytest.raises(StoreFailed):
        await retrying(Sleepless(), "sweeping", Round(StoreFailed()))


async def test_cancelling_ends_it():
    with pytest.raises(asyncio.CancelledError):
        await retrying(Sleepless(), "sweeping", Round(asyncio.CancelledError()))


async def test_pauses_grow_little_for_what_passes_and_more_for_what_nobody_foresaw():
    passing, strange = Sleepless(), Sleepless()

    await retrying(passing, "sweeping", Round(*[StoreBusy()] * 5))
    await retrying(strange, "sweeping", Round(*[Invariant()] * 8))

    assert passing.pauses == [1, 2, 4, 5, 5]
    assert strange.pauses == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_the_log_says_what_failed_and_where_once(caplog: pytest.LogCaptureFixture):
    await retrying(Sleepless(), "sweeping", Round(Invariant("odd"), Invariant("odd")))

    assert [(one.getMessage(), bool(one.exc_info)) for one in caplog.records] == [
        ("sweeping: failed, again in 1 s: odd", True),
        ("sweeping: failed, again in 2 s: odd", False),
    ]
