import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.tools.calls import call, failure, make_context
from wakeful.tools.running import LONGEST_OUTPUT, LONGEST_RESULT, THREAD_LIMIT, cut
from wakeful.tools.tool import Effect, Tool, ToolResult
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput, Transient


def returning(value: Any) -> Tool:
    def act() -> Any:
        return value

    return Tool(act)


def raising(error: BaseException, *, is_async: bool) -> Tool:
    def plain() -> None:
        raise error

    async def awaited() -> None:
        raise error

    return Tool(awaited if is_async else plain, name="act")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such thing"), "ValueError: no such thing"),
        (InvalidInput("path", "must be short"), "path: must be short"),
        (Transient("later"), "later"),
        (RuntimeError(), "RuntimeError: "),
        (TimeoutError("the far end was slow"), "TimeoutError: the far end was slow"),
        (ValueError("a\ud800b\0"), "ValueError: a\ufffdb\ufffd"),
    ],
)
async def test_a_tool_that_raises_gives_a_result_that_says_so(
    error: Exception, said: str, is_async: bool
) -> None:
    assert await failure(raising(error, is_async=is_async), make_context()) == said


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_exits_does_not_end_the_runtime(is_async: bool) -> None:
    said = await failure(raising(SystemExit(3), is_async=is_async), make_context())

    assert "SystemExit" in said


async def test_a_tool_that_leaks_stop_iteration_is_a_failure_too() -> None:
    assert "StopIteration" in await failure(
        raising(StopIteration(), is_async=False), make_context()
    )


async def test_cancellation_passes_through() -> None:
    started = asyncio.Event()

    async def act() -> None:
        started.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(Tool(act), make_context()))
        await started.wait()
        task.cancel()

    assert task.cancelled()


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (Effect.READ, "timed out after 5 s"),
        (Effect.EFFECT, "timed out after 5 s; its outcome is unknown"),
    ],
)
async def test_an_async_tool_that_hangs_is_cancelled(effect: Effect, said: str) -> None:
    clock, started, cancelled = ManualClock(), asyncio.Event(), asyncio.Event()

    async def act() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            failure(Tool(act, effect=effect, timeout_s=5), make_context(clock=clock))
        )
        await started.wait()
        clock.advance(5)

    assert task.result() == said
    assert cancelled.is_set()


async def test_a_plain_tool_that_hangs_times_out_and_its_thread_is_left() -> None:
    clock, started, released = ManualClock(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def act() -> None:
        threads.append(threading.current_thread())
        started.set()
        released.wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(failure(Tool(act, timeout_s=5), make_context(clock=clock)))
        await asyncio.to_thread(started.wait)
        clock.advance(5)

    assert task.result() == "timed out after 5 s; its outcome is unknown"
    assert threads[0].is_alive()
    assert threads[0].daemon
    released.set()
    await asyncio.to_thread(threads[0].join)


async def test_hanging_threads_are_bounded() -> None:
    started, released = threading.Semaphore(0), threading.Event()
    threads: list[threading.Thread] = []

    def act() -> None:
        threads.append(threading.current_thread())
        started.release()
        released.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(THREAD_LIMIT):
            group.create_task(call(Tool(act), make_context()))
        for _ in range(THREAD_LIMIT):
            await asyncio.to_thread(started.acquire)

        said = await failure(Tool(act), make_context())

        released.set()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert "already running or hanging" in said


def endless() -> object:
    nested: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 50):
        nested = [nested]
    return nested


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "done"),
        ("text\0 \ud800", "text\ufffd \ufffd"),
        (ToolResult(text="a\0"), "a\ufffd"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (3, "3"),
        (object, "<class 'object'>"),
    ],
)
async def test_whatever_a_tool_returns_becomes_text(value: object, said: str) -> None:
    result = await call(returning(value), make_context())

    assert (result.text, result.is_error) == (said, False)


@pytest.mark.parametrize("make", [endless, Unprintable])
async def test_what_cannot_become_text_is_a_failure(make: Callable[[], object]) -> None:
    result = await call(returning(make()), make_context())

    assert result.is_error


async def test_a_result_may_say_that_the_turn_rests() -> None:
    result = await call(returning(ToolResult(text="bye", ends_turn=True)), make_context())

    assert result.ends_turn


def test_a_short_output_is_shown_as_it_is() -> None:
    assert cut("x" * LONGEST_RESULT, "k") == ("x" * LONGEST_RESULT, None)


def test_a_long_output_is_cut_marked_and_kept() -> None:
    shown, kept = cut("x" * (LONGEST_RESULT + 7), "tn_1.1.0")

    assert shown.endswith(
        "x\n[cut: 7 more characters; read on with read_output, id 'tn_1.1.0', offset 16384]"
    )
    assert kept == "x" * (LONGEST_RESULT + 7)


def test_what_is_kept_of_an_output_is_bounded() -> None:
    _, kept = cut("x" * (LONGEST_OUTPUT + 7), "k")

    assert kept is not None
    assert len(kept) == LONGEST_OUTPUT
