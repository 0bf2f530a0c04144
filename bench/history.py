"""The cost of a turn when the session has a long past that the model no longer sees."""

import asyncio
import time
from itertools import count, cycle, repeat
from pathlib import Path
from statistics import median

from bench.crowd import Crowd, crowd, names
from bench.figures import Figure
from bench.ledger import MODEL_SESSION, Ledger, opened, prepare

SHORT = 200
LONG = 10_000
CONTEXT = 100  # entries that the model sees, in both
PAIRS = 24
WARM_TURNS = 6
MOST = 1.2  # of the cost with a short past


def measure(folder: Path) -> list[Figure]:
    _fill(folder / "home")
    return asyncio.run(_measure(folder / "home"))


def load(folder: Path) -> None:
    _fill(folder / "home")
    asyncio.run(_load(folder / "home"))


async def _measure(home: Path) -> list[Figure]:
    first: list[tuple[float, float]] = []
    later: list[tuple[float, float]] = []
    async with crowd(home) as callers:
        await callers.turns(["warm-up"], 20)
        for short, long in zip(names("short", PAIRS), names("long", PAIRS), strict=True):
            first.append((await _cost(callers, short), await _cost(callers, long)))
            for _ in range(WARM_TURNS):
                later.append((await _cost(callers, short), await _cost(callers, long)))
    return [_figure("history.first_turn", first), _figure("history", later)]


async def _load(home: Path) -> None:
    async with crowd(home) as callers:
        for session in names("long", PAIRS):
            await callers.turns([session], 1)


async def _cost(callers: Crowd, session: str) -> float:
    """Return the CPU milliseconds of one turn; what the disk adds would hide a difference."""
    started = time.process_time()
    await callers.turn(session)
    return (time.process_time() - started) * 1000


def _figure(name: str, costs: list[tuple[float, float]]) -> Figure:
    floor = median(short for short, _ in costs)
    return Figure(
        name=name,
        value=median(long for _, long in costs),
        unit="ms",
        floor=floor,
        floor_is=f"CPU of the same turn after {SHORT} entries",
        goal=floor * MOST,
    )


def _fill(home: Path) -> None:
    prepare(home)
    with opened(home) as ledger:
        numbers = count()
        for kind, length in (("short", SHORT), ("long", LONG)):
            for name in names(kind, PAIRS):
                add_session(ledger, f"agent:main:{name}", length, numbers)


def add_session(
    ledger: Ledger, key: str, length: int, numbers: "count[int]", context: int = CONTEXT
) -> None:
    branch = f"tr_{key}"
    bodies = [row[0] for row in ledger.run("SELECT body FROM entries ORDER BY depth LIMIT 2")]
    ids = [f"en_0{next(numbers):011d}" for _ in range(length)]
    ledger.copy(
        "entries",
        length,
        id=ids,
        transcript_id=repeat(branch),
        branch=repeat(branch),
        depth=range(length),
        turn_id=(f"tn_0{number // 2:011d}" for number in range(length)),
        stimulus_id=repeat(None),
        body=cycle(bodies),
    )
    ledger.copy("lanes", 1, f"session_key = '{MODEL_SESSION}'", session_key=[key])
    ledger.copy(
        "sessions",
        1,
        f"key = '{MODEL_SESSION}'",
        key=[key],
        transcript_id=[branch],
        branch=[branch],
        leaf_id=[ids[-1]],
        leaf_depth=[length - 1],
        leaf_hash=[ledger.run("SELECT hash FROM entries WHERE id = :id", id=ids[-1])[0][0]],
        context_from=[length - context],
    )
