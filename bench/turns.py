"""Plain turns over a hundred sessions: how many per second, and the CPU that each costs."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.crowd import crowd, names
from bench.figures import Figure, Sense
from bench.floors import BareLoop
from wakeful.transcript import indexing

SESSIONS = 100
TURNS_EACH = 5
ROUNDS = 9
ALONE = 30  # turns of one session, nobody else around
CPU_MS = 2
FOREVER_S = 3600.0


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    turns = SESSIONS * TURNS_EACH
    rates: list[tuple[float, float]] = []
    cpus: list[tuple[float, float]] = []
    async with crowd(folder / "home") as callers:
        sessions = names("turns", SESSIONS)
        await callers.turns(sessions, 1)  # makes the sessions
        for _ in range(ROUNDS):
            bare_wall, bare_cpu = _now()
            await BareLoop().turns(SESSIONS, TURNS_EACH)
            wall, cpu = _now()
            await callers.turns(sessions, TURNS_EACH)
            end_wall, end_cpu = _now()
            rates.append((turns / (end_wall - wall), turns / (wall - bare_wall)))
            cpus.append(((end_cpu - cpu) / turns * 1000, (cpu - bare_cpu) / turns * 1000))
    with _indexer_waiting():
        alone = await _alone(folder / "alone")
    indexed = await _alone(folder / "indexed")
    return [
        Figure(
            name="turns",
            value=median(value for value, _ in rates),
            unit="/s",
            floor=median(floor for _, floor in rates),
            floor_is="the same awaits on a bare loop",
            sense=Sense.AT_LEAST,
            goal=500,
        ),
        *(
            Figure(
                name=name,
                value=median(value for value, _ in costs),
                unit="ms",
                floor=median(floor for _, floor in costs),
                floor_is="CPU of the same awaits on a bare loop",
                goal=goal,
            )
            for name, costs, goal in (
                ("turns.cpu", cpus, CPU_MS),
                ("turns.cpu_alone", alone, CPU_MS),
                ("turns.cpu_alone_indexed", indexed, None),
            )
        ),
    ]


async def _alone(home: Path) -> list[tuple[float, float]]:
    """Return what a turn of one session costs with nobody else around, and its bare awaits."""
    costs: list[tuple[float, float]] = []
    async with crowd(home) as callers:
        session = names("alone", 1)
        await callers.turns(session, ALONE)  # to be warm
        for _ in range(ROUNDS):
            before = _now()[1]
            await BareLoop().turns(1, ALONE)
            bare = _now()[1]
            await callers.turns(session, ALONE)
            costs.append(((_now()[1] - bare) / ALONE * 1000, (bare - before) / ALONE * 1000))
    return costs


@contextmanager
def _indexer_waiting() -> Generator[None]:
    """Let the indexer gather for as long as the block lasts.

    It follows behind the turns and costs a share that depends on how fast they come: a burst is
    one write for it, turns with pauses between them are one each.
    """
    usual, indexing.GATHER_S = indexing.GATHER_S, FOREVER_S
    try:
        yield
    finally:
        indexing.GATHER_S = usual


async def _load(folder: Path) -> None:
    async with crowd(folder / "home") as callers:
        await callers.turns(names("turns", SESSIONS), TURNS_EACH * 3)


def _now() -> tuple[float, float]:
    """Return the wall time and the CPU time of all threads, in seconds."""
    return time.perf_counter(), time.process_time()
