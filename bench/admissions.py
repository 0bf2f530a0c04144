"""Durable admissions: a hundred callers, each waiting for its receipt before it sends again.

What they send is not due before tomorrow, so that no turn competes with its acceptance.
"""

import asyncio
import time
from pathlib import Path
from statistics import median

from bench.crowd import PROMPT, Crowd, crowd, names
from bench.figures import Figure, Sense, admission_goal, percentile
from bench.floors import Disk, PlainCommits
from wakeful.vocabulary.session_key import SessionKey, canonical
from wakeful.vocabulary.stimulus import Draft

CALLERS = 100
SESSIONS_EACH = 30
ROUNDS = 9
DAY_MS = 86_400_000


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    rates: list[float] = []
    p99s: list[float] = []
    plain: list[float] = []
    syncs: list[float] = []
    with Disk(folder) as disk, PlainCommits(folder) as commits:
        async with crowd(folder / "home") as callers:
            await _round(callers)  # makes the sessions
            for _ in range(ROUNDS):
                plain.append(commits.rate(300))
                syncs.append(percentile(disk.syncs(200), 99))
                started = time.perf_counter()
                taken = await _round(callers)
                rates.append(len(taken) / (time.perf_counter() - started))
                p99s.append(percentile(taken, 99))
    return [
        Figure(
            name="admissions",
            value=median(rates),
            unit="/s",
            floor=median(plain),
            floor_is="commits one at a time",
            sense=Sense.AT_LEAST,
            goal=admission_goal(median(plain)),
        ),
        Figure(
            name="admissions.p99",
            value=median(p99s) * 1000,
            unit="ms",
            floor=median(syncs) * 1000,
            floor_is="p99 of a synced 4 KiB write",
            goal=20,
        ),
    ]


async def _load(folder: Path) -> None:
    async with crowd(folder / "home") as callers:
        for _ in range(ROUNDS):
            await _round(callers)


async def _round(callers: Crowd) -> list[float]:
    """Have every caller send one message to each of its sessions; return the times it waited."""
    taken: list[float] = []
    not_before = callers.runtime.clock.now() + DAY_MS
    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            sessions = [canonical(name) for name in names(f"caller:{caller}", SESSIONS_EACH)]
            group.create_task(_call(callers, sessions, not_before, taken))
    return taken


async def _call(
    callers: Crowd, sessions: list[SessionKey], not_before: int, taken: list[float]
) -> None:
    for session in sessions:
        started = time.perf_counter()
        await callers.runtime.accept(Draft(session_key=session, text=PROMPT, not_before=not_before))
        taken.append(time.perf_counter() - started)
