"""A hundred thousand sleeping sessions: what they cost a process, and a look at its agents."""

import asyncio
import time
from pathlib import Path
from statistics import median

from bench import fresh
from bench.crowd import Crowd, crowd, names
from bench.figures import Figure, percentile
from bench.sleepers import put_to_sleep

SLEEPERS = 100_000
ROUNDS = 5
LOOKS = 50
MORE_MB = 10
STATUS_MS = 20
WAKE_AT = 4_000_000_000_000  # in the year 2096


def measure(folder: Path) -> list[Figure]:
    none, many = folder / "none", folder / "many"
    asyncio.run(_fill(none, 1))
    asyncio.run(_fill(many, SLEEPERS))
    without = [fresh.start(none).memory_mb for _ in range(ROUNDS)]
    with_sleepers = [fresh.start(many).memory_mb for _ in range(ROUNDS)]
    floor, looks = (asyncio.run(_looks(home)) for home in (none, many))
    return [
        Figure(
            name="asleep.memory",
            value=median(with_sleepers),
            unit="MB",
            floor=median(without),
            floor_is="the same start with one sleeper",
            goal=median(without) + MORE_MB,
        ),
        Figure(
            name="asleep.status",
            value=percentile(looks, 50),
            unit="ms",
            floor=percentile(floor, 50),
            floor_is="the same look with one sleeper",
            goal=STATUS_MS,
        ),
    ]


def load(folder: Path) -> None:
    asyncio.run(_fill(folder / "many", SLEEPERS))
    asyncio.run(_looks(folder / "many"))


async def _fill(home: Path, count: int) -> None:
    async with crowd(home) as callers:
        await put_to_sleep(callers.runtime.store, names("sleeper", count), WAKE_AT)


async def _looks(home: Path) -> list[float]:
    """Return how many milliseconds each look took at what `status` and the agents show."""
    async with crowd(home) as callers:
        return [await _look(callers) for _ in range(LOOKS)]


async def _look(callers: Crowd) -> float:
    views = callers.runtime.services.views
    started = time.perf_counter()
    (agent,) = await views.agents.all()
    await views.ledger.waiting()
    taken = (time.perf_counter() - started) * 1000
    assert agent.next_wake_at == WAKE_AT
    return taken
