"""Ten thousand automations: adding one, a page of their list, a look at the clock, a start."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import fresh
from bench.crowd import crowd, names
from bench.figures import Figure, percentile
from wakeful.automations import jobs
from wakeful.automations.wishes import Maker, Wish
from wakeful.gate.locking import write_in_lanes
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.views.automations import AutomationFilter
from wakeful.vocabulary.automation import CronSchedule
from wakeful.vocabulary.session_key import canonical
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

AUTOMATIONS = 10_000
IN_EACH_SESSION = 10
STEP = 20  # sessions that one write makes
ROUNDS = 5
SAMPLES = 100
PAGE = 50
ADD_MS = 2
PAGE_MS = 5
TICK_MS = 2
MORE_MS = 50  # that a start may take
ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name=OPERATOR, is_person=True)
DAILY = CronSchedule(expr="30 7 * * *", tz="UTC")


def measure(folder: Path) -> list[Figure]:
    few, many = folder / "few", folder / "many"
    for home, count in ((few, IN_EACH_SESSION), (many, AUTOMATIONS)):
        asyncio.run(_fill(home, count))
    floor, found = (asyncio.run(_looks(home)) for home in (few, many))
    starts: dict[Path, list[float]] = {few: [], many: []}
    for _ in range(ROUNDS):
        for home, taken in starts.items():
            taken.append(fresh.start(home).first_turn_s * 1000)
    least_ms = median(starts[few])
    goals = {"add": ADD_MS, "page": PAGE_MS, "tick": TICK_MS}
    return [
        *(
            Figure(
                name=f"automations.{what}",
                value=percentile(found[what], 50),
                unit="ms",
                floor=percentile(floor[what], 50),
                floor_is="the same with ten automations",
                goal=goal,
            )
            for what, goal in goals.items()
        ),
        Figure(
            name="automations.start",
            value=median(starts[many]),
            unit="ms",
            floor=least_ms,
            floor_is="the same start with ten automations",
            goal=least_ms + MORE_MS,
        ),
    ]


def load(folder: Path) -> None:
    asyncio.run(_fill(folder / "many", AUTOMATIONS))
    asyncio.run(_looks(folder / "many"))


async def _fill(home: Path, count: int) -> None:
    keys = [canonical(name) for name in names("job", count // IN_EACH_SESSION)]
    async with crowd(home) as callers:
        for first in range(0, len(keys), STEP):
            part = keys[first : first + STEP]
            await write_in_lanes(
                callers.runtime.store,
                part,
                lambda tx, part=part: _write(tx, callers.runtime, part),
            )
        ((rows,),) = await callers.runtime.store.read("SELECT COUNT(*) FROM automations")
    if rows != count:
        raise RuntimeError(f"the ledger has {rows} automations, not {count}")


def _write(tx: Tx, runtime: Runtime, keys: Sequence[str]) -> None:
    acts = runtime.services.automations
    for key in keys:
        opener = Draft(session_key=key, text="-", trust=Trust.OPERATOR, owner=OPERATOR)
        runtime.services.intake.open_in(tx, opener)
        for number in range(IN_EACH_SESSION):
            job = acts.built(_wish(f"{key} {number}", key), ME, f"job_{key}_{number}", tx.now)
            jobs.put(tx, job)
            jobs.set_timers(tx, job)


def _wish(name: str, key: str) -> Wish:
    return Wish(name=name, schedule=DAILY, message="look at the weather", session_key=key)


async def _looks(home: Path) -> dict[str, list[float]]:
    """Return how many milliseconds each thing took, each time."""
    async with crowd(home) as callers:
        runtime = callers.runtime
        keeper: Any = runtime._running.built.loops["timekeeper"]  # pyright: ignore[reportPrivateUsage]
        views, acts = runtime.services.views, runtime.services.automations
        fresh_keys = names("new", SAMPLES // IN_EACH_SESSION)
        for name in fresh_keys:
            await callers.turn(name)
        numbers = iter(range(SAMPLES))

        async def add() -> None:
            number = next(numbers)
            key = canonical(fresh_keys[number // IN_EACH_SESSION])
            await acts.add(_wish(f"new {number}", key), ME)

        async def page() -> None:
            found = await views.automations.page(OPERATOR, AutomationFilter(), None, PAGE)
            assert found.items

        return {
            "add": await _timed(add),
            "page": await _timed(page),
            "tick": await _timed(keeper.fire_due),
        }


async def _timed(act: Callable[[], Awaitable[object]]) -> list[float]:
    taken: list[float] = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - began) * 1000)
    return taken
