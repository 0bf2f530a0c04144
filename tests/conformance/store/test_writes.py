"""A write is all or nothing, is answered after its commit, and concerns its caller alone."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.conformance.store.conftest import Opener
from tests.conformance.store.tables import Hold, add_note, names_of, together
from wakeful.store import writer
from wakeful.store.database import Store, Tx
from wakeful.vocabulary.errors import Invariant, Overloaded, StoreRefused


class Odd(BaseException):
    pass


async def test_a_write_is_visible_to_readers_once_it_returned(store: Store) -> None:
    result = await store.transact(lambda tx: add_note(tx, "a"))

    assert result == "a"
    assert await names_of(store) == ["a"]


async def test_what_is_answered_outlives_the_store(lasting_opener: Opener) -> None:
    store = await lasting_opener()
    await store.transact(lambda tx: add_note(tx, "a"))
    await store.close()

    again = await lasting_opener()
    found = await names_of(again)
    await again.close()

    assert found == ["a"]


async def test_a_failed_write_does_not_fail_its_neighbours(store: Store) -> None:
    def fail(tx: Tx) -> None:
        add_note(tx, "half done")
        raise ValueError("mine alone")

    first, failed, last = await together(
        store,
        store.transact(lambda tx: add_note(tx, "a")),
        store.transact(fail),
        store.transact(lambda tx: add_note(tx, "b")),
    )

    assert (first, last) == ("a", "b")
    assert isinstance(failed, ValueError)
    assert await names_of(store) == ["a", "b"]


async def test_many_failing_writes_leave_the_good_ones_whole(store: Store) -> None:
    def write(tx: Tx, number: int) -> int:
        add_note(tx, f"{number:03}")
        if number % 7 == 0:
            raise ValueError(number)
        return number

    def call(number: int) -> Any:
        return store.transact(lambda tx: write(tx, number))

    results = await together(store, *map(call, range(100)))

    good = [number for number in range(100) if number % 7]
    assert [result for result in results if isinstance(result, int)] == good
    assert await names_of(store) == [f"{number:03}" for number in good]


async def test_a_refusal_is_a_value(store: Store) -> None:
    sql = "INSERT INTO notes (id) VALUES (:id) ON CONFLICT DO NOTHING"

    changed = await together(
        store, *(store.transact(lambda tx: tx.run(sql, id="same")) for _ in range(3))
    )

    assert changed == [1, 0, 0]


async def test_a_broken_constraint_reaches_only_the_caller_that_broke_it(store: Store) -> None:
    first, second, third = await together(
        store,
        store.transact(lambda tx: add_note(tx, "same")),
        store.transact(lambda tx: add_note(tx, "same")),
        store.transact(lambda tx: add_note(tx, "other")),
    )

    assert (first, third) == ("same", "other")
    assert isinstance(second, Invariant)
    assert await names_of(store) == ["other", "same"]


async def test_an_error_that_a_function_swallows_still_undoes_its_write(store: Store) -> None:
    def careless(tx: Tx) -> str:
        add_note(tx, "before")
        with suppress(Invariant):
            tx.run("INSERT INTO notes (id) VALUES (NULL), (NULL), ('taken')")
        return "all is well"

    await store.transact(lambda tx: add_note(tx, "taken"))
    failed, neighbour = await together(
        store, store.transact(careless), store.transact(lambda tx: add_note(tx, "n"))
    )

    assert isinstance(failed, Invariant)
    assert neighbour == "n"
    assert await names_of(store) == ["n", "taken"]


async def test_functions_run_in_the_order_of_their_arrival(store: Store) -> None:
    order: list[int] = []

    def call(number: int) -> Any:
        return store.transact(lambda tx: tx.after_commit(lambda: order.append(number)))

    await together(store, *map(call, range(20)))

    assert order == list(range(20))


async def test_a_group_shares_one_time(store: Store) -> None:
    times = await together(store, *(store.transact(lambda tx: tx.now) for _ in range(5)))

    assert len(set(times)) == 1


async def test_nothing_follows_a_commit_that_did_not_happen(store: Store) -> None:
    followed: list[str] = []
    store.listen("notes", followed.append)

    def fail(tx: Tx) -> None:
        tx.after_commit(lambda: followed.append("after"))
        tx.notify("notes", "key")
        raise ValueError

    await together(store, store.transact(fail))

    assert followed == []


async def test_what_follows_a_commit_happens_once_though_functions_run_again(
    store: Store,
) -> None:
    runs: list[str] = []
    followed: list[str] = []

    def good(tx: Tx) -> None:
        runs.append("good")
        tx.after_commit(lambda: followed.append("after"))

    def fail(tx: Tx) -> None:
        raise ValueError

    await together(store, store.transact(good), store.transact(fail))

    assert runs == ["good", "good"]
    assert followed == ["after"]


async def test_what_follows_a_commit_has_happened_when_the_write_returns(store: Store) -> None:
    followed: list[str] = []
    store.listen("notes", followed.append)

    def write(tx: Tx) -> None:
        tx.notify("notes", "key")
        tx.after_commit(lambda: followed.append("after"))

    await store.transact(write)

    assert sorted(followed) == ["after", "key"]


async def test_a_key_is_told_once_per_group(store: Store) -> None:
    told: list[str] = []
    undo = store.listen("notes", told.append)

    def write(tx: Tx) -> None:
        tx.notify("notes", "a")
        tx.notify("notes", "b")
        tx.notify("elsewhere", "c")

    await together(store, store.transact(write), store.transact(write))
    undo()
    await store.transact(write)

    assert told == ["a", "b"]


async def test_a_listener_that_fails_does_not_silence_the_others(store: Store) -> None:
    reports: list[dict[str, Any]] = []
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def fail(key: str) -> None:
        raise ValueError(key)

    store.listen("notes", fail)
    store.listen("notes", told.append)
    await store.transact(lambda tx: tx.notify("notes", "a"))

    assert told == ["a"]
    assert isinstance(reports[0]["exception"], ValueError)


async def test_cancellation_waits_for_the_outcome(store: Store) -> None:
    hold = Hold()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        write = tasks.create_task(store.transact(lambda tx: add_note(tx, "a")))
        cancelled_early = tasks.create_task(_cancel(write))
        await cancelled_early
        was_done = write.done()
        hold.let_go()

    assert not was_done
    assert write.cancelled()
    assert await names_of(store) == ["a"]


async def test_a_cancelled_write_that_fails_is_just_cancelled(store: Store) -> None:
    hold = Hold()

    def fail(tx: Tx) -> None:
        raise ValueError

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        write = tasks.create_task(store.transact(fail))
        await tasks.create_task(_cancel(write))
        hold.let_go()

    assert write.cancelled()


async def test_a_function_may_raise_anything(store: Store) -> None:
    def stop(tx: Tx) -> None:
        raise StopIteration

    def leave(tx: Tx) -> None:
        raise Odd

    stopped, left, good = await together(
        store,
        store.transact(stop),
        store.transact(leave),
        store.transact(lambda tx: add_note(tx, "a")),
    )

    assert isinstance(stopped, RuntimeError)
    assert isinstance(left, Odd)
    assert good == "a"


async def test_writes_queued_before_closing_are_finished(lasting_opener: Opener) -> None:
    store = await lasting_opener()
    hold = Hold()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        queued = tasks.create_task(store.transact(lambda tx: add_note(tx, "a")))
        await tasks.create_task(_nothing())
        tasks.create_task(store.close())
        hold.let_go()

    assert queued.result() == "a"


async def test_a_closed_store_refuses(opener: Opener) -> None:
    store = await opener()
    await store.close()

    with pytest.raises(StoreRefused):
        await store.transact(lambda tx: None)
    with pytest.raises(StoreRefused):
        await store.read("SELECT 1")


async def test_a_store_may_be_closed_twice(opener: Opener) -> None:
    store = await opener()

    await store.close()
    await store.close()


async def test_too_many_waiting_writes_are_refused_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAITING_LIMIT", 3)

    results = await together(
        store, *(store.transact(lambda tx, name=name: add_note(tx, name)) for name in "abcde")
    )

    assert results[:3] == ["a", "b", "c"]
    assert all(isinstance(result, Overloaded) for result in results[3:])


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


async def _nothing() -> None:
    pass
