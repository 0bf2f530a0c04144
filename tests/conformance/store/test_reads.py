"""A read never blocks the event loop, never writes and never takes for ever."""

import asyncio

import pytest

from tests.conformance.store.conftest import Opener
from tests.conformance.store.tables import SLOW, Hold, add_note, names_of
from wakeful.store import readers
from wakeful.store.database import Store
from wakeful.vocabulary.errors import Overloaded, Transient, WakefulError


async def test_a_read_that_takes_too_long_is_interrupted(opener: Opener) -> None:
    store = await opener(read_timeout_s=0.1)

    with pytest.raises(Transient, match="too long"):
        await store.read(SLOW)

    assert await store.read("SELECT 1") == [(1,)]
    await store.close()


async def test_the_event_loop_runs_while_a_read_does(opener: Opener) -> None:
    store = await opener(read_timeout_s=0.2)
    turns = 0

    async with asyncio.TaskGroup() as tasks:
        read = tasks.create_task(_interrupted(store))
        while not read.done():
            turns += 1
            await tasks.create_task(_nothing())

    assert turns > 10
    await store.close()


async def test_writes_go_on_while_a_read_runs(lasting_opener: Opener) -> None:
    store = await lasting_opener(read_timeout_s=0.5)

    async with asyncio.TaskGroup() as tasks:
        read = tasks.create_task(_interrupted(store))
        await store.transact(lambda tx: add_note(tx, "a"))
        was_reading = not read.done()

    assert was_reading
    await store.close()


async def test_reads_go_on_while_a_write_runs(lasting_opener: Opener) -> None:
    store = await lasting_opener()
    hold = Hold()

    async with asyncio.TaskGroup() as tasks:
        write = tasks.create_task(store.transact(hold))
        await hold.entered()
        found = await names_of(store)
        was_writing = not write.done()
        hold.let_go()

    assert found == []
    assert was_writing
    await store.close()


async def test_many_reads_at_once_are_all_answered(store: Store) -> None:
    found = await asyncio.gather(
        *(store.read("SELECT CAST(:n AS BIGINT)", n=number) for number in range(200))
    )

    assert found == [[(number,)] for number in range(200)]


async def test_too_many_waiting_reads_are_refused_at_once(
    lasting_opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "WAITING_LIMIT", 3)
    store = await lasting_opener()

    results = await asyncio.gather(
        *(store.read("SELECT 1") for _ in range(5)), return_exceptions=True
    )
    await store.close()

    assert results[:3] == [[(1,)]] * 3
    assert all(isinstance(result, Overloaded) for result in results[3:])


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(WakefulError):
        await store.read("INSERT INTO notes (id) VALUES ('x')")

    assert await names_of(store) == []
    await store.transact(lambda tx: add_note(tx, "a"))


async def test_a_cancelled_read_harms_nobody(store: Store) -> None:
    async with asyncio.TaskGroup() as tasks:
        read = tasks.create_task(store.read("SELECT 1"))
        await tasks.create_task(_nothing())
        read.cancel()

    assert await store.read("SELECT 2") == [(2,)]


async def test_a_read_sees_no_half_of_a_write(store: Store) -> None:
    async def write() -> None:
        for number in range(30):
            await store.transact(
                lambda tx, n=number: (add_note(tx, f"{n}-a"), add_note(tx, f"{n}-b"))
            )

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        counts: list[int] = []
        while not writing.done():
            counts.append((await store.read("SELECT count(*) FROM notes"))[0][0])

    assert all(count % 2 == 0 for count in counts)


async def _interrupted(store: Store) -> None:
    with pytest.raises(Transient):
        await store.read(SLOW)


async def _nothing() -> None:
    pass
