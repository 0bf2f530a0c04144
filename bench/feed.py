"""The feed over a million turns: what a page of it costs, and what is unread."""

import asyncio
import time
from itertools import cycle, repeat
from pathlib import Path

from bench.crowd import Crowd, crowd
from bench.figures import Figure, percentile
from bench.ledger import opened, prepare
from wakeful.views.activity import FeedFilter
from wakeful.vocabulary.kinds import Origin

TURNS = 1_000_000
ROWS = 200
LOOKS = 40
GOAL_MS = 20
START = 1_700_000_000_000

FILTERS = {
    "feed": FeedFilter(),
    "feed.origin": FeedFilter(origin=Origin.WEBHOOK),
    "feed.agent_and_origin": FeedFilter(agent_id="main", origin=Origin.USER),
}


def measure(folder: Path) -> list[Figure]:
    few, many = folder / "few", folder / "many"
    _fill(few, ROWS)
    _fill(many, TURNS)
    floors, taken = (asyncio.run(_looks(home)) for home in (few, many))
    return [
        Figure(
            name=name,
            value=percentile(taken[name], 50),
            unit="ms",
            floor=percentile(floors[name], 50),
            floor_is=f"the same look over {ROWS} turns",
            goal=GOAL_MS,
        )
        for name in taken
    ]


def load(folder: Path) -> None:
    _fill(folder / "many", TURNS)
    asyncio.run(_looks(folder / "many"))


def _fill(home: Path, count: int) -> None:
    prepare(home)
    with opened(home) as ledger:
        ((opened_by,),) = ledger.run("SELECT opened_by FROM turns")
        ledger.copy(
            "turns",
            count,
            id=(f"tn_{number:024d}" for number in range(count)),
            kind=cycle(["user"] * 9 + ["webhook"]),
            opened_by=repeat(opened_by),
            ended_at=range(START, START + count),
        )


async def _looks(home: Path) -> dict[str, list[float]]:
    """Return how many milliseconds each look took: at pages by filter, and at the counts."""
    async with crowd(home) as callers:
        found = {name: await _pages(callers, wanted) for name, wanted in FILTERS.items()}
        return {**found, "feed.counts": [await _counts(callers) for _ in range(LOOKS)]}


async def _pages(callers: Crowd, wanted: FeedFilter) -> list[float]:
    view = callers.runtime.services.views.activity
    taken: list[float] = []
    after: str | None = None
    for _ in range(LOOKS):
        started = time.perf_counter()
        page = await view.page(wanted, after, ROWS)
        taken.append((time.perf_counter() - started) * 1000)
        after = page.next
    return taken


async def _counts(callers: Crowd) -> float:
    started = time.perf_counter()
    await callers.runtime.services.views.counts.get()
    return (time.perf_counter() - started) * 1000
