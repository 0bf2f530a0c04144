"""A verb runs once for all rows of a group, and in its place."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.store.tables import (
    ADD_NOTES,
    COUNTERS,
    PUBLISH,
    Hold,
    add_note,
    add_notes,
    names_of,
    together,
)
from wakeful.store import writer
from wakeful.store.database import (
    GROUP_LIMIT,
    YIELDING_FUNCTIONS,
    Lock,
    Store,
    Tx,
    Verb,
)
from wakeful.store.writer import GOES_FIRST
from wakeful.vocabulary.errors import Invariant


def recorder(name: str, log: list[str], rank: int = 0) -> Verb[str, str]:
    def run(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        log.append(f"{name} {' '.join(rows)}")
        return rows

    return Verb(name, run, rank=rank)


async def test_rows_of_many_callers_run_as_one_set(store: Store) -> None:
    log: list[str] = []
    verb = recorder("verb", log)

    results = await together(store, *(store.batch(verb, row) for row in "abc"))

    assert results == ["a", "b", "c"]
    assert log == ["verb a b c"]


async def test_rows_that_yield_let_others_go_first_and_are_all_done(
    store: Store,
) -> None:
    log: list[str] = []
    sizes: list[int] = []

    def run(tx: Tx, rows: Sequence[int]) -> Sequence[int]:
        tx.after_commit(lambda: (log.append("yields"), sizes.append(len(rows))))
        return rows

    def speak(tx: Tx) -> None:
        tx.after_commit(lambda: log.append("other"))

    verb = Verb("yields", run, yields=True)
    numbers = [*range(3 * store.yielding_rows)]
    results = await together(
        store, *(store.batch(verb, number) for number in numbers), store.transact(speak)
    )

    assert results[:-1] == numbers
    assert log == ["other", "yields", "yields", "yields"]
    assert sizes == [store.yielding_rows] * 3


async def test_rows_that_yield_join_the_others_where_these_never_end(store: Store) -> None:
    log: list[str] = []

    def run(tx: Tx, rows: Sequence[int]) -> Sequence[int]:
        tx.after_commit(lambda: log.append("yields"))
        return rows

    def speak(tx: Tx) -> None:
        tx.after_commit(lambda: log.append("other"))

    groups = GOES_FIRST + 2
    others = [store.transact(speak) for _ in range(groups * GROUP_LIMIT)]
    await together(store, store.batch(Verb("yields", run, yields=True), 1), *others)

    assert log.count("other") == groups * GROUP_LIMIT
    assert GOES_FIRST * GROUP_LIMIT <= log.index("yields") <= (GOES_FIRST + 1) * GROUP_LIMIT


async def test_whoever_was_answered_and_writes_again_goes_before_what_yields(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FOLLOWER_S", 60.0)  # so that a slow machine proves it, too
    log: list[str] = []

    async def speak_twice() -> None:
        await store.batch(replace(recorder("first", log), is_followed=True), "")
        await store.transact(lambda _: log.append("second"))

    verb = replace(recorder("yields", log), yields=True)
    await together(store, *(store.batch(verb, "") for _ in range(3)), speak_twice())

    assert [line.split()[0] for line in log] == ["first", "second", "yields"]


async def test_what_yields_goes_on_though_nobody_writes_again(store: Store) -> None:
    log: list[str] = []
    followed = replace(recorder("first", log), is_followed=True)
    verb = replace(recorder("yields", log), yields=True)

    await together(store, store.batch(verb, ""), store.batch(followed, ""))

    assert [line.split()[0] for line in log] == ["first", "yields"]


async def test_few_functions_that_yield_share_a_commit(store: Store) -> None:
    sizes: list[int] = []

    def run(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        sizes.append(len(rows))
        return rows

    once_a_commit = Verb("once a commit", run)
    await together(
        store,
        *(store.transact(lambda tx: tx.gather(once_a_commit, ""), yields=True) for _ in range(9)),
    )

    assert sizes[0] == YIELDING_FUNCTIONS
    assert max(sizes) == YIELDING_FUNCTIONS
    assert sum(sizes) == 9


async def test_each_caller_gets_the_result_of_its_own_row(store: Store) -> None:
    names = [f"{number:02}" for number in range(50)]

    results = await together(store, *(store.batch(ADD_NOTES, name) for name in names))

    assert results == [f"did {name}" for name in names]
    assert await names_of(store) == names


async def test_a_row_that_fails_does_not_fail_the_others(store: Store) -> None:
    def run(tx: Tx, names: Sequence[str]) -> Sequence[str]:
        results = add_notes(tx, names)
        if "bad" in names:
            raise ValueError
        return results

    verb = Verb("picky", run)
    first, bad, last, function = await together(
        store,
        store.batch(verb, "a"),
        store.batch(verb, "bad"),
        store.batch(verb, "b"),
        store.transact(lambda tx: add_note(tx, "c")),
    )

    assert (first, last, function) == ("did a", "did b", "c")
    assert isinstance(bad, ValueError)
    assert await names_of(store) == ["a", "b", "c"]


async def test_a_verb_must_answer_every_row(store: Store) -> None:
    def forget(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        return rows[1:]

    with pytest.raises(Invariant, match="forgetful"):
        await store.batch(Verb("forgetful", forget), "a")


async def test_a_group_runs_its_verbs_then_its_functions_then_what_was_gathered(
    store: Store,
) -> None:
    log: list[str] = []
    last, early = recorder("last", log, rank=9), recorder("early", log, rank=1)

    def write(tx: Tx, name: str) -> None:
        log.append(f"function {name}")
        tx.gather(last, name)
        tx.gather(early, name)

    await together(
        store,
        store.transact(lambda tx: write(tx, "a")),
        store.batch(recorder("verb", log), "x"),
        store.transact(lambda tx: write(tx, "b")),
        store.batch(recorder("verb", log), "y"),
    )

    assert log == ["verb x", "verb y", "function a", "function b", "early a b", "last a b"]


async def test_a_gathered_verb_may_gather_for_a_later_one(store: Store) -> None:
    log: list[str] = []
    last = recorder("last", log, rank=9)

    def run(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        for row in rows:
            tx.gather(last, f"of-{row}")
        return rows

    def write(tx: Tx) -> None:
        tx.gather(last, "own")
        tx.gather(Verb("first", run, rank=1), "a")

    await store.transact(write)

    assert log == ["last own of-a"]


async def test_rows_gathered_by_a_failed_write_are_dropped(store: Store) -> None:
    def fail(tx: Tx) -> None:
        tx.gather(PUBLISH, "never")
        raise ValueError

    await together(
        store, store.transact(fail), store.transact(lambda tx: tx.gather(PUBLISH, "published"))
    )

    assert await store.read("SELECT seq, body FROM events") == [(1, "published")]


async def test_a_gathered_verb_that_fails_fails_only_whose_rows_it_got(store: Store) -> None:
    def run(tx: Tx, rows: Sequence[str]) -> Sequence[str]:
        if "bad" in rows:
            raise ValueError
        return rows

    picky = Verb("picky", run)

    def write(tx: Tx, name: str) -> str:
        add_note(tx, name)
        tx.gather(picky, name)
        return name

    def call(name: str) -> Any:
        return store.transact(lambda tx: write(tx, name))

    results = await together(store, *map(call, ["a", "b", "bad", "c"]))

    assert [result for result in results if isinstance(result, str)] == ["a", "b", "c"]
    assert isinstance(results[2], ValueError)
    assert await names_of(store) == ["a", "b", "c"]


async def test_numbers_are_given_without_gaps_or_repeats(store: Store) -> None:
    results = await together(store, *(store.batch(PUBLISH, str(n)) for n in range(30)))
    more = await store.batch(PUBLISH, "more")

    assert sorted(results) == list(range(1, 31))
    assert more == 31


async def test_a_locked_row_exists(store: Store) -> None:
    def increment(tx: Tx) -> int:
        return tx.run("UPDATE counters SET value = value + 1 WHERE key = 'new'")

    assert await store.transact(increment, locks=[Lock(COUNTERS, "new")]) == 1
    assert await store.transact(increment, locks=[Lock(COUNTERS, "new")]) == 1
    assert await store.read("SELECT value FROM counters") == [(2,)]


async def test_each_of_many_rows_has_its_own_outcome(store: Store) -> None:
    def run(tx: Tx, rows: Sequence[int]) -> Sequence[int]:
        if 2 in rows:
            raise ValueError("not this one")
        return [row * 10 for row in rows]

    results = await store.batch_all(Verb("tens", run), range(4))

    assert [str(result) for result in results] == ["0", "10", "not this one", "30"]
    assert isinstance(results[2], ValueError)


async def test_whoever_gives_up_many_rows_waits_for_all_of_them(store: Store) -> None:
    hold = Hold()
    done: list[int] = []

    def run(tx: Tx, rows: Sequence[int]) -> Sequence[int]:
        tx.after_commit(lambda: done.extend(rows))
        return rows

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        many = tasks.create_task(store.batch_all(Verb("many", run), range(3)))
        await asyncio.sleep(0)  # noqa: TID251 (no time passes: the rows are queued)
        many.cancel()
        hold.let_go()

    assert many.cancelled()
    assert done == [0, 1, 2]
