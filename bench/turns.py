"""Plain turns over a hundred sessions: how many per second, and the CPU that each costs."""

import asyncio
import time
from pathlib import Path
from statistics import median

from bench.crowd import crowd, names
from bench.figures import Figure, Sense
from bench.floors import BareLoop

SESSIONS = 100
TURNS_EACH = 5
ROUNDS = 9
ALONE = 30  # turns of one session, nobody else around


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    turns = SESSIONS * TURNS_EACH
    rates: list[tuple[float, float]] = []
    cpus: list[tuple[float, float]] = []
    alone: list[tuple[float, float]] = []
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
            await BareLoop().turns(1, ALONE)
            bare_cpu = _now()[1]
            await callers.turns(sessions[:1], ALONE)
            cpu = _now()[1]
            alone.append(((cpu - bare_cpu) / ALONE * 1000, (bare_cpu - end_cpu) / ALONE * 1000))
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
                goal=2,
            )
            for name, costs in (("turns.cpu", cpus), ("turns.cpu_alone", alone))
        ),
    ]


async def _load(folder: Path) -> None:
    async with crowd(folder / "home") as callers:
        await callers.turns(names("turns", SESSIONS), TURNS_EACH * 3)


def _now() -> tuple[float, float]:
    """Return the wall time and the CPU time of all threads, in seconds."""
    return time.perf_counter(), time.process_time()
