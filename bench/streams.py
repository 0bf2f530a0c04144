"""How many answers one core reads at once while its loop stays awake."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from bench.crowd import PROMPT, crowd, names
from bench.figures import Figure, Sense, percentile
from bench.pacing import DELTAS, EVERY_S, pacing, ready
from bench.voices import MODEL, BareVoice, question_of
from wakeful.settings.settings import LaneSettings, Settings
from wakeful.vocabulary.message import UserMessage

FIRST = 50
MOST = 3200  # beyond, descriptors and ports end before the core does
NEAR = 1.12  # how exact the number is
ROUNDS = 3
LOOK_S = 0.005
WINDOW_S = 1.5  # of the two seconds that an answer takes
MOST_LAG_S = 0.05
SHARE = 0.6  # of what the bare stream carries

Ask = Callable[[int], Awaitable[None]]  # asks so many at once, and returns when all have answered


def measure(folder: Path) -> list[Figure]:
    with pacing() as port:
        _lead_to(port)
        return asyncio.run(_measure(folder, port))


def load(folder: Path) -> None:
    with pacing() as port:
        _lead_to(port)
        asyncio.run(_load(folder, port))


def _lead_to(port: int) -> None:
    os.environ["ANTHROPIC_API_KEY"] = "test"
    os.environ["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{port}"


async def _measure(folder: Path, port: int) -> list[Figure]:
    bare, question = BareVoice(port), question_of([UserMessage(text=PROMPT)])

    async def stream(count: int) -> None:
        await bare.at_once(question, count, 1)

    settings = Settings(lanes=LaneSettings(main=2 * MOST))
    async with crowd(folder / "home", model=MODEL, settings=settings) as callers:

        async def ask(count: int) -> None:
            await callers.turns(names("stream", count), 1)

        # Side by side, and the better of two: whatever else the machine does only takes away.
        pairs = [(await _carried(port, ask), await _carried(port, stream)) for _ in range(2)]
        value, floor = (max(pair[place] for pair in pairs) for place in (0, 1))
        fits, floor_fits = await _fitting(port, ask), await _fitting(port, stream)
        share = max(FIRST, int(SHARE * floor))
        lag, floor_lag = await _least_lag(port, share, ask), await _least_lag(port, share, stream)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_watch(callers.runtime.subscribe(topics=["turn.delta"])))
            watched = await _carried(port, ask)
            watching.cancel()
    await bare.close()
    return [
        Figure(
            name="streams",
            value=value,
            unit="",
            floor=floor,
            floor_is="bare streams that one core carries",
            sense=Sense.AT_LEAST,
            goal=SHARE * max(floor, FIRST),  # a machine too busy for the bare ones proves nothing
        ),
        Figure(
            name="streams.lag",
            value=lag * 1000,
            unit="ms",
            floor=floor_lag * 1000,
            floor_is=f"p99 of the loop's lag with {share} bare streams, as with ours",
            sense=Sense.UNDER,
            goal=MOST_LAG_S * 1000,
        ),
        Figure(
            name="streams.by_cpu",
            value=fits,
            unit="",
            floor=floor_fits,
            floor_is="bare streams whose CPU is one core's, on however busy a machine",
            sense=Sense.AT_LEAST,
            goal=SHARE * floor_fits,
        ),
        Figure(
            name="streams.watched",
            value=watched,
            unit="",
            floor=floor,
            floor_is="bare streams that nobody watches",
            sense=Sense.AT_LEAST,
        ),
    ]


async def _load(folder: Path, port: int) -> None:
    settings = Settings(lanes=LaneSettings(main=2 * MOST))
    async with crowd(folder / "home", model=MODEL, settings=settings) as callers:
        await _lag(port, 200, lambda count: callers.turns(names("stream", count), 1))


async def _watch(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


async def _carried(port: int, ask: Ask) -> int:
    """Return the greatest number of answers at once with which the loop stays awake."""
    await _lag(port, FIRST, ask)  # to be warm
    good, bad = 0, FIRST
    while bad <= MOST and await _lag(port, bad, ask) < MOST_LAG_S:
        good, bad = bad, bad * 2
    while good and bad / good > NEAR:
        middle = (good + bad) // 2
        if await _lag(port, middle, ask) < MOST_LAG_S:
            good = middle
        else:
            bad = middle
    return good


async def _fitting(port: int, ask: Ask) -> float:
    """Return how many answers at once would take the CPU of one core, with all that they are."""
    started = time.process_time()
    for _ in range(ROUNDS):
        await _lag(port, 2 * FIRST, ask)
    each = (time.process_time() - started) / (ROUNDS * 2 * FIRST)
    return DELTAS * EVERY_S / each


async def _least_lag(port: int, count: int, ask: Ask) -> float:
    return min([await _lag(port, count, ask) for _ in range(ROUNDS)])


async def _lag(port: int, count: int, ask: Ask) -> float:
    """Return how late the loop is at the 99th percentile while so many answers come in."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_asked(ask, count))
        await asyncio.to_thread(ready, port, count)
        late: list[float] = []
        ends = time.perf_counter() + WINDOW_S
        while (now := time.perf_counter()) < ends:
            await asyncio.sleep(LOOK_S)
            late.append(time.perf_counter() - now - LOOK_S)
    return percentile(late, 99)


async def _asked(ask: Ask, count: int) -> None:
    await ask(count)
