"""How many answers one core reads at once while its loop stays awake."""

import asyncio
import math
import os
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bench.crowd import PROMPT, crowd, names
from bench.figures import Figure, Sense, percentile
from bench.neighbours import reading, taken_by_others, too_busy
from bench.pacing import DELTAS, EVERY_S, pacing, ready
from bench.voices import MODEL, BareVoice, question_of
from wakeful.settings.settings import LaneSettings, Settings
from wakeful.vocabulary.message import UserMessage

FIRST = 50
MOST = 3200  # beyond, ports end before the core does
NEAR = 1.2  # how exact the number is
TRIES = 2  # whatever else the machine does only takes away: the better one counts
ROUNDS = 2
LOOK_S = 0.005
WINDOW_S = 1.5  # of the two seconds that an answer takes
MOST_LAG_S = 0.05
SHARE = 0.6  # of what the bare stream carries
SEARCH_S = 18  # after which a number is not looked for more exactly
CORES = 2  # one for us, one for the provider

Ask = Callable[[int], Awaitable[None]]  # asks so many at once, and returns when all have answered


@dataclass(frozen=True)
class Carried:
    """How many answers at once the loop carried, ours and bare ones."""

    value: int
    floor: int
    fits: float  # by their CPU alone
    floor_fits: float
    share: int  # of bare ones, with which the lag was measured
    lag_s: float
    floor_lag_s: float
    watched: int


def measure(folder: Path) -> list[Figure]:
    _allow_descriptors()
    before = reading()
    with pacing() as port:
        _lead_to(port)
        carried = asyncio.run(_measure(folder, port))
    after = reading()
    others = taken_by_others(before, after) if before and after else 0.0
    return figures(carried, others, os.cpu_count() or 1)


def load(folder: Path) -> None:
    with pacing() as port:
        _lead_to(port)
        asyncio.run(_load(folder, port))


def figures(carried: Carried, others: float, cores: int) -> list[Figure]:
    """Judge what was carried while others took so many cores.

    On a busy machine the bare streams are held to their CPU instead, of which others take nothing
    away: who reaches that has proven enough, and of anybody else nobody can tell.
    """
    is_busy = too_busy(others, cores, CORES) or carried.floor < FIRST
    robbed = f"others took {others:.1f} of {cores} cores" if is_busy else ""
    busy = f"too busy to judge: {robbed}" if is_busy else ""
    instead = f"; judged by their CPU, since {robbed}" if is_busy else ""
    floor = max(carried.floor, carried.floor_fits) if is_busy else carried.floor
    goal = SHARE * max(floor, FIRST)
    return [
        Figure(
            name="streams",
            value=carried.value,
            unit="",
            floor=carried.floor,
            floor_is=f"bare streams that one core carries{instead}",
            sense=Sense.AT_LEAST,
            goal=goal,
            doubt=busy if carried.value < goal else "",
        ),
        Figure(
            name="streams.lag",
            value=carried.lag_s * 1000,
            unit="ms",
            floor=carried.floor_lag_s * 1000,
            floor_is=f"p99 of the loop's lag with {carried.share} bare streams, as with ours",
            sense=Sense.UNDER,
            goal=MOST_LAG_S * 1000,
            doubt=busy if carried.lag_s >= MOST_LAG_S else "",
        ),
        Figure(
            name="streams.by_cpu",
            value=carried.fits,
            unit="",
            floor=carried.floor_fits,
            floor_is="bare streams whose CPU is one core's, on however busy a machine",
            sense=Sense.AT_LEAST,
            goal=SHARE * carried.floor_fits,
        ),
        Figure(
            name="streams.watched",
            value=carried.watched,
            unit="",
            floor=carried.floor,
            floor_is="bare streams that nobody watches",
            sense=Sense.AT_LEAST,
        ),
    ]


def _allow_descriptors() -> None:
    """Let this process and its children have as many connections as they may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _lead_to(port: int) -> None:
    os.environ["ANTHROPIC_API_KEY"] = "test"
    os.environ["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{port}"


async def _measure(folder: Path, port: int) -> Carried:
    bare, question = BareVoice(port), question_of([UserMessage(text=PROMPT)])

    async def stream(count: int) -> None:
        await bare.at_once(question, count, 1)

    settings = Settings(lanes=LaneSettings(main=2 * MOST))
    async with crowd(folder / "home", model=MODEL, settings=settings) as callers:

        async def ask(count: int) -> None:
            await callers.turns(names("stream", count), 1)

        await _lag(port, FIRST, ask)  # to be warm
        await _lag(port, FIRST, stream)
        fits, floor_fits = await _fitting(port, ask), await _fitting(port, stream)
        floor, value = await _carried(port, stream), await _carried(port, ask)
        share = max(FIRST, int(SHARE * max(floor, floor_fits)))
        lag, floor_lag = await _least_lag(port, share, ask), await _least_lag(port, share, stream)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_watch(callers.runtime.subscribe(topics=["turn.delta"])))
            watched = await _carried(port, ask)
            watching.cancel()
    await bare.close()
    return Carried(
        value=value,
        floor=floor,
        fits=fits,
        floor_fits=floor_fits,
        share=share,
        lag_s=lag,
        floor_lag_s=floor_lag,
        watched=watched,
    )


async def _load(folder: Path, port: int) -> None:
    settings = Settings(lanes=LaneSettings(main=2 * MOST))
    async with crowd(folder / "home", model=MODEL, settings=settings) as callers:
        await _lag(port, 200, lambda count: callers.turns(names("stream", count), 1))


async def _watch(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


async def _carried(port: int, ask: Ask) -> int:
    """Return the greatest number of answers at once with which the loop stays awake.

    When the time is over, that is the greatest that was found until then.
    """
    last = time.perf_counter() + SEARCH_S
    good, bad = 0, FIRST
    while bad <= MOST and await _least_lag(port, bad, ask) < MOST_LAG_S:
        good, bad = bad, bad * 2
    while good and bad / good > NEAR and time.perf_counter() < last:
        middle = (good + bad) // 2
        if await _least_lag(port, middle, ask) < MOST_LAG_S:
            good = middle
        else:
            bad = middle
    return good


async def _fitting(port: int, ask: Ask) -> float:
    """Return how many answers at once would take the CPU of one core, with all that they are."""
    started = time.process_time()
    for _ in range(ROUNDS):
        await _lag(port, FIRST, ask)
    each = (time.process_time() - started) / (ROUNDS * FIRST)
    return DELTAS * EVERY_S / each


async def _least_lag(port: int, count: int, ask: Ask) -> float:
    """Return the least lag of a few tries; one that is small enough needs no other."""
    least = math.inf
    for _ in range(TRIES):
        least = min(least, await _lag(port, count, ask))
        if least < MOST_LAG_S:
            break
    return least


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
