"""Two stores on one PostgreSQL: nothing is lost between them, and order is commit order."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from itertools import chain, pairwise

import pytest

from tests.conformance.store.conftest import Opener
from tests.conformance.store.tables import (
    COUNTERS,
    PUBLISH,
    WAIT_S,
    Hold,
    add_note,
    names_of,
)
from wakeful.store.database import Lock, Store, Tx, Verb
from wakeful.vocabulary.errors import StoreRefused

Pair = tuple[Store, Store]


@pytest.fixture
async def pair(open_on_postgres: Opener) -> AsyncIterator[Pair]:
    stores = (await open_on_postgres(exclusive=False), await open_on_postgres(exclusive=False))
    yield stores
    for store in stores:
        await store.close()


def increment(tx: Tx, key: str) -> int:
    """Read, then write: right only under the lock."""
    found = tx.one("SELECT value FROM counters WHERE key = :key", key=key)
    assert found is not None
    tx.run("UPDATE counters SET value = :value WHERE key = :key", value=found[0] + 1, key=key)
    return found[0]


async def test_a_counter_under_its_lock_loses_no_update(pair: Pair) -> None:
    locks = [Lock(COUNTERS, "one")]

    async def count(store: Store) -> list[int]:
        return [
            await store.transact(lambda tx: increment(tx, "one"), locks=locks) for _ in range(25)
        ]

    counted = await asyncio.gather(*(count(store) for store in pair for _ in range(4)))

    assert sorted(chain.from_iterable(counted)) == list(range(200))


async def test_a_verb_under_its_locks_loses_no_update(pair: Pair) -> None:
    def run(tx: Tx, keys: Sequence[str]) -> Sequence[int]:
        return [increment(tx, key) for key in keys]

    verb = Verb("increment", run, locks=lambda key: [Lock(COUNTERS, key)])

    async def count(store: Store, number: int) -> None:
        for step in range(20):
            await store.batch(verb, f"key-{(number + step) % 3}")

    await asyncio.gather(*(count(store, n) for store in pair for n in range(6)))

    found = await pair[0].read("SELECT key, value FROM counters ORDER BY key")
    assert found == [("key-0", 80), ("key-1", 80), ("key-2", 80)]


async def test_locks_named_in_any_order_never_block_each_other_for_ever(pair: Pair) -> None:
    names = ["a", "b", "c", "d"]

    async def count(store: Store, order: list[str]) -> None:
        for _ in range(15):
            await store.transact(
                lambda tx: [increment(tx, name) for name in order],
                locks=[Lock(COUNTERS, name) for name in order],
            )

    await asyncio.gather(*(count(store, order) for store in pair for order in (names, names[::-1])))

    found = await pair[0].read("SELECT DISTINCT value FROM counters")
    assert found == [(60,)]


async def test_a_number_is_never_visible_before_a_lower_one(pair: Pair) -> None:
    writing = 2

    async def publish(store: Store) -> None:
        nonlocal writing
        for number in range(40):
            await store.transact(lambda tx: tx.gather(PUBLISH, "x"))
            await store.batch(PUBLISH, str(number))
        writing -= 1

    async def look(store: Store) -> None:
        while writing:
            rows = await store.read("SELECT seq FROM events ORDER BY seq")
            assert [row[0] for row in rows] == list(range(1, len(rows) + 1))

    await asyncio.gather(*(act(store) for store in pair for act in (publish, look)))

    assert await pair[0].read("SELECT count(*), max(seq) FROM events") == [(160, 160)]


async def test_writes_pass_a_transaction_that_is_held_open_before_its_commit(
    pair: Pair,
) -> None:
    hold = Hold()
    held, other = pair

    def hold_last(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        hold(tx)
        return rows

    last = Verb("hold", hold_last, rank=5)

    def write(tx: Tx) -> None:
        add_note(tx, "held")
        tx.gather(last, "x")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(held.transact(write))
        await hold.entered()
        await other.transact(lambda tx: add_note(tx, "passed"))
        seen = await names_of(other)
        hold.let_go()

    assert seen == ["passed"]
    assert await names_of(other) == ["held", "passed"]


async def test_a_held_number_holds_back_the_numbers_after_it(pair: Pair) -> None:
    hold = Hold()
    held, other = pair

    def hold_last(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        hold(tx)
        return rows

    after_numbers = Verb("hold", hold_last, rank=PUBLISH.rank + 1)

    def write(tx: Tx) -> None:
        tx.gather(PUBLISH, "first")
        tx.gather(after_numbers, "x")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(held.transact(write))
        await hold.entered()
        second = tasks.create_task(other.batch(PUBLISH, "second"))
        seen = await other.read("SELECT seq FROM events")
        was_done = second.done()
        hold.let_go()

    assert seen == []
    assert not was_done
    rows = await other.read("SELECT seq, body FROM events ORDER BY seq")
    assert rows == [(1, "first"), (2, "second")]


async def test_what_waits_for_a_lock_sees_what_its_holder_committed(pair: Pair) -> None:
    hold = Hold()
    held, other = pair
    locks = [Lock(COUNTERS, "one")]

    def write(tx: Tx) -> None:
        increment(tx, "one")
        hold(tx)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(held.transact(write, locks=locks))
        await hold.entered()
        waiting = tasks.create_task(other.transact(lambda tx: increment(tx, "one"), locks=locks))
        await held.read("SELECT 1")
        hold.let_go()

    assert waiting.result() == 1


async def test_a_deadlock_is_run_again(pair: Pair) -> None:
    both = threading.Barrier(2)
    add_one = "UPDATE counters SET value = value + 1 WHERE key = :key"
    runs: list[str] = []

    def write(tx: Tx, order: str) -> str:
        runs.append(order)
        first, second = order
        tx.run(add_one, key=first)
        if len(runs) <= 2:  # the first time, each waits until the other has its first row
            both.wait(WAIT_S)
        tx.run(add_one, key=second)
        return order

    for key in "ab":
        await pair[0].transact(lambda tx: None, locks=[Lock(COUNTERS, key)])
    results = await asyncio.gather(
        pair[0].transact(lambda tx: write(tx, "ab")), pair[1].transact(lambda tx: write(tx, "ba"))
    )

    assert results == ["ab", "ba"]
    assert len(runs) >= 3
    assert await pair[0].read("SELECT value FROM counters") == [(2,), (2,)]


async def test_one_runtime_has_the_database(open_on_postgres: Opener) -> None:
    store = await open_on_postgres()

    with pytest.raises(StoreRefused, match="in use by wakeful"):
        await open_on_postgres()

    await store.close()
    await (await open_on_postgres()).close()


async def test_two_stores_may_start_at_once_on_an_empty_database(
    open_on_postgres: Opener,
) -> None:
    stores = await asyncio.gather(*(open_on_postgres(exclusive=False) for _ in range(4)))

    versions = [await store.read("SELECT version FROM schema") for store in stores]
    for store in stores:
        await store.close()

    assert all(a == b for a, b in pairwise(versions))
