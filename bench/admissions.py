"""Durable admissions: a hundred callers, each waiting for its receipt before it sends again.

What they send is not due before tomorrow, so that no turn competes with its acceptance.
"""

import asyncio
import time
from pathlib import Path
from statistics import median

from bench.crowd import PROMPT, names
from bench.figures import Figure, Sense, admission_goal, percentile
from bench.floors import Disk, PlainCommits
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.testing.kit import operator_draft
from wakeful.turn.agent import Agent
from wakeful.vocabulary.session_key import SessionKey, canonical

CALLERS = 100
SESSIONS_EACH = 30
ROUNDS = 9
COMMITS = 300  # of the floor, in each round
DAY_MS = 86_400_000
SESSIONS = [  # a caller knows where it sends
    [canonical(name) for name in names(f"caller:{caller}", SESSIONS_EACH)]
    for caller in range(CALLERS)
]


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    rates: list[float] = []
    p99s: list[float] = []
    cpus: list[float] = []
    plain: list[float] = []
    plain_cpus: list[float] = []
    syncs: list[float] = []
    with Disk(folder) as disk, PlainCommits(folder) as commits:
        async with _runtime(folder) as runtime:
            await _round(runtime)  # makes the sessions
            for _ in range(ROUNDS):
                syncs.append(percentile(disk.syncs(200), 99))
                cpu = time.process_time()
                plain.append(commits.rate(COMMITS))
                plain_cpus.append((time.process_time() - cpu) / COMMITS)
                started, cpu = time.perf_counter(), time.process_time()
                taken = await _round(runtime)
                rates.append(len(taken) / (time.perf_counter() - started))
                cpus.append((time.process_time() - cpu) / len(taken))
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
        Figure(
            name="admissions.cpu",
            value=median(cpus) * 1000,
            unit="ms",
            floor=median(plain_cpus) * 1000,
            floor_is="CPU of a commit alone",
        ),
    ]


async def _load(folder: Path) -> None:
    async with _runtime(folder) as runtime:
        for _ in range(ROUNDS):
            await _round(runtime)


def _runtime(folder: Path) -> Runtime:
    return Runtime(agents=[Agent(model=Scripted([]))], home=folder / "home")


async def _round(runtime: Runtime) -> list[float]:
    """Have every caller send one message to each of its sessions; return the times it waited."""
    taken: list[float] = []
    not_before = runtime.clock.now() + DAY_MS
    async with asyncio.TaskGroup() as group:
        for sessions in SESSIONS:
            group.create_task(_call(runtime, sessions, not_before, taken))
    return taken


async def _call(
    runtime: Runtime, sessions: list[SessionKey], not_before: int, taken: list[float]
) -> None:
    for session in sessions:
        started = time.perf_counter()
        await runtime.accept(operator_draft(session, text=PROMPT, not_before=not_before))
        taken.append(time.perf_counter() - started)
