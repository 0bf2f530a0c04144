"""Opening, continuing and showing a session of a hundred thousand entries."""

import asyncio
import time
from itertools import count
from pathlib import Path
from statistics import median

from bench.crowd import Crowd, crowd
from bench.figures import Figure
from bench.history import CONTEXT, add_session
from bench.ledger import opened, prepare

LENGTHS = {"short": CONTEXT, "long": 100_000}
ROUNDS = 12  # a runtime each, so that every first turn has to open its session
TAILS = 20
TAIL = 50  # entries
MOST = 1.2  # of what a short session takes


def measure(folder: Path) -> list[Figure]:
    _fill(folder / "home")
    opens: list[tuple[float, float]] = []
    tails: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        asyncio.run(_round(folder / "home", opens, tails))
    return [_figure("sessions.open", opens), _figure("sessions.tail", tails)]


def load(folder: Path) -> None:
    _fill(folder / "home")
    asyncio.run(_round(folder / "home", [], []))


async def _round(
    home: Path, opens: list[tuple[float, float]], tails: list[tuple[float, float]]
) -> None:
    async with crowd(home) as callers:
        await callers.turns(["warm-up"], 3)
        opens.append((await _turn(callers, "short"), await _turn(callers, "long")))
        for _ in range(TAILS):
            tails.append((await _tail(callers, "short"), await _tail(callers, "long")))


async def _turn(callers: Crowd, session: str) -> float:
    """Return the CPU milliseconds of a turn in a session that nobody has read yet."""
    started = time.process_time()
    await callers.turn(session)
    return (time.process_time() - started) * 1000


async def _tail(callers: Crowd, session: str) -> float:
    started = time.process_time()
    found = await callers.runtime.entries(session, limit=TAIL)
    taken = (time.process_time() - started) * 1000
    assert len(found) == TAIL
    return taken


def _figure(name: str, costs: list[tuple[float, float]]) -> Figure:
    floor = median(short for short, _ in costs)
    return Figure(
        name=name,
        value=median(long for _, long in costs),
        unit="ms",
        floor=floor,
        floor_is=f"CPU of the same with {LENGTHS['short']} entries instead of {LENGTHS['long']}",
        goal=floor * MOST,
    )


def _fill(home: Path) -> None:
    prepare(home)
    with opened(home) as ledger:
        numbers = count()
        for name, length in LENGTHS.items():
            key = f"agent:main:{name}"
            add_session(ledger, key, length, numbers)
            # As if its words were in the index already: that is measured elsewhere.
            ledger.add("search_heads", ["branch", "depth"], [(f"tr_{key}", length - 1)])
