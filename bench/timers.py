"""A million pending timers: what they cost a starting process."""

import asyncio
from itertools import repeat
from pathlib import Path
from statistics import median

from bench import fresh
from bench.figures import Figure
from bench.ledger import opened, prepare

TIMERS = 1_000_000
ROUNDS = 5
MORE_MB = 5
MORE_MS = 100
FIRST_DUE = 4_000_000_000_000  # in the year 2096


def measure(folder: Path) -> list[Figure]:
    none, many = folder / "none", folder / "many"
    prepare(none)
    _fill(many)
    without: list[fresh.Start] = []
    with_timers: list[fresh.Start] = []
    for _ in range(ROUNDS):
        without.append(fresh.start(none))
        with_timers.append(fresh.start(many))
    floor_mb = median(start.memory_mb for start in without)
    floor_ms = median(start.first_turn_s for start in without) * 1000
    return [
        Figure(
            name="timers.memory",
            value=median(start.memory_mb for start in with_timers),
            unit="MB",
            floor=floor_mb,
            floor_is="the same start without timers",
            goal=floor_mb + MORE_MB,
        ),
        Figure(
            name="timers.start",
            value=median(start.first_turn_s for start in with_timers) * 1000,
            unit="ms",
            floor=floor_ms,
            floor_is="the same start without timers",
            goal=floor_ms + MORE_MS,
        ),
    ]


def load(folder: Path) -> None:
    _fill(folder / "many")
    asyncio.run(fresh.start_here(folder / "many"))


def _fill(home: Path) -> None:
    prepare(home)
    with opened(home) as ledger:
        ids = (f"tm_{number:012x}" for number in range(TIMERS))
        dues = range(FIRST_DUE, FIRST_DUE + TIMERS)
        ledger.add(
            "timers",
            ["id", "due_at", "kind", "target", "payload"],
            zip(ids, dues, repeat("stimulus"), repeat("agent:main:main"), repeat("{}")),
        )
        rows = ledger.count("timers")
    if rows != TIMERS:
        raise RuntimeError(f"the ledger has {rows} timers, not {TIMERS}")
