"""The writer answers every caller, whatever happens to it."""

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping, Sequence

import pytest

from wakeful.store import group, writer
from wakeful.store.backend import Backend, Rerun
from wakeful.store.database import Lock, Row
from wakeful.store.full_text import SQLITE_FULL_TEXT
from wakeful.store.grouped import GroupedStore
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import StoreBusy, StoreDamaged, StoreFailed


class Fragile(Backend):
    """A database that does nothing, or fails where it is told to."""

    def __init__(self, failures: dict[str, BaseException] | None = None) -> None:
        super().__init__()
        self.failures = failures or {}
        self.log: list[str] = []

    def all(self, sql: str, /, **params: object) -> Sequence[Row]:
        return [(self.now,)]

    def one(self, sql: str, /, **params: object) -> Row | None:
        return (self.now,)

    def run(self, sql: str, /, **params: object) -> int:
        return 1

    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        pass

    def begin(self) -> None:
        self._do("begin")

    def take(self, locks: Sequence[Lock]) -> None:
        self._do("take")

    def commit(self) -> None:
        self._do("commit")

    def rollback(self) -> None:
        self._do("rollback")

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        self._do("read")
        return []

    def tidy(self, *, is_idle: bool) -> bool:
        self._do("tidy")
        return False

    def close(self) -> None:
        self._do("close")

    def _do(self, act: str) -> None:
        self.log.append(act)
        if act in self.failures:
            raise self.failures[act]


def opened(open_backend: Callable[[], Backend]) -> GroupedStore:
    return GroupedStore(
        open_backend, clock=ManualClock(), open_reader=None, full_text=SQLITE_FULL_TEXT
    )


async def started(backend: Backend) -> GroupedStore:
    store = opened(lambda: backend)
    await store.start()
    return store


class Round:
    """Awaited: the next round of the event loop, and the writer's thread may run meanwhile."""

    def __await__(self) -> Generator[None, None, None]:
        threading.Event().wait(0.002)
        yield


async def test_a_bug_in_the_writer_fails_the_store_and_leaves_nobody_waiting() -> None:
    backend = Fragile({"commit": ValueError("x"), "rollback": RuntimeError("a bug")})
    store = await started(backend)

    results = await asyncio.gather(
        *(store.transact(lambda tx: None) for _ in range(3)), return_exceptions=True
    )
    await store.wait_failed()

    assert [type(result) for result in results] == [StoreFailed] * 3
    with pytest.raises(StoreFailed, match="a bug"):
        await store.transact(lambda tx: None)
    await store.close()


@pytest.mark.parametrize("error", [StoreFailed("disk"), StoreDamaged("page"), OSError("odd")])
async def test_a_failure_between_groups_fails_the_store(error: Exception) -> None:
    store = await started(Fragile({"tidy": error}))

    await store.transact(lambda tx: None)
    await store.wait_failed()

    with pytest.raises((StoreFailed, StoreDamaged)):
        await store.transact(lambda tx: None)
    await store.close()


async def test_a_rollback_that_finds_the_disk_broken_says_so() -> None:
    store = await started(Fragile({"commit": ValueError(), "rollback": StoreFailed("disk")}))

    with pytest.raises(StoreFailed, match="disk"):
        await store.transact(lambda tx: None)
    await store.close()


async def test_callers_of_a_busy_database_each_get_their_own_error() -> None:
    store = await started(Fragile({"begin": StoreBusy("held", retry_after_s=2.0)}))

    first, second = await asyncio.gather(
        store.transact(lambda tx: None), store.transact(lambda tx: None), return_exceptions=True
    )

    assert isinstance(first, StoreBusy)
    assert isinstance(second, StoreBusy)
    assert first.retry_after_s == second.retry_after_s == 2.0
    assert first is not second
    await store.close()


async def test_a_write_that_the_database_keeps_undoing_is_given_up_one_day() -> None:
    store = await started(Fragile({"commit": Rerun()}))

    with pytest.raises(StoreBusy, match="kept undoing"):
        await store.transact(lambda tx: None)
    await store.close()


async def test_a_write_that_the_database_undoes_slowly_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group, "RERUN_S", -1.0)
    backend = Fragile({"commit": Rerun()})
    store = await started(backend)

    with pytest.raises(StoreBusy, match="kept undoing"):
        await store.transact(lambda tx: None)
    await store.close()

    assert backend.log.count("commit") == 1


async def test_a_read_that_fails_on_the_writer_thread_reaches_its_caller() -> None:
    store = await started(Fragile({"read": ValueError("mine")}))

    with pytest.raises(ValueError, match="mine"):
        await store.read("SELECT 1")
    await store.close()


async def test_a_database_that_cannot_be_opened_says_why() -> None:
    def fail() -> Backend:
        raise StoreDamaged("the reason")

    store = opened(fail)

    with pytest.raises(StoreDamaged, match="the reason"):
        await store.start()
    await store.close()


async def test_cancelling_the_opening_closes_what_was_opened() -> None:
    backend = Fragile()
    store = opened(lambda: backend)

    async with asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(store.start())
        await tasks.create_task(_nothing())
        opening.cancel()

    assert opening.cancelled()
    assert backend.log == ["close"]


async def test_a_close_that_fails_still_ends() -> None:
    store = await started(Fragile({"close": StoreFailed("too late")}))

    await store.close()


async def _nothing() -> None:
    pass


async def test_callers_of_the_same_moment_share_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LONGEST_GATHERING_S", 60.0)
    backend = Fragile()
    store = await started(backend)

    async def call(rounds: int) -> None:
        for _ in range(rounds):
            await Round()
        await store.transact(lambda _: None)

    async with asyncio.TaskGroup() as group:
        for rounds in range(10):
            group.create_task(call(rounds))
    await store.close()

    assert backend.log.count("commit") == 1


async def test_callers_who_keep_coming_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LONGEST_GATHERING_S", 0.0)
    store = await started(Fragile())

    async def crowd(group: asyncio.TaskGroup) -> None:
        while True:
            group.create_task(store.transact(lambda _: None))
            await Round()

    async with asyncio.TaskGroup() as group:
        coming = group.create_task(crowd(group))
        answer = await store.transact(lambda _: "answered")
        coming.cancel()
    await store.close()

    assert answer == "answered"


async def test_what_gathers_when_the_store_closes_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "LONGEST_GATHERING_S", 60.0)
    store = await started(Fragile())

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.transact(lambda _: "written"))
        await Round()
        await store.close()

    assert writing.result() == "written"
