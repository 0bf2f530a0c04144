"""From a stimulus to the model's being asked, on a session where nothing happens."""

import asyncio
import time
from pathlib import Path

from bench.crowd import ANSWER, Crowd, crowd, names
from bench.figures import Figure, percentile
from bench.floors import PlainCommits
from wakeful.models.model import Request
from wakeful.models.scripted import Line

SESSIONS = 20
ROUNDS = 8
SAMPLES = 100  # of each round
QUIET_S = 0.002  # between a turn's end and the next stimulus


class Stopwatch:
    """Notes when the model is asked."""

    def __init__(self) -> None:
        self.asked_at = 0.0

    def answer(self, _: Request) -> Line:
        self.asked_at = time.perf_counter()
        return ANSWER


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    taken: list[float] = []
    plain: list[float] = []
    watch = Stopwatch()
    sessions = names("quiet", SESSIONS)
    with PlainCommits(folder) as commits:
        async with crowd(folder / "home", answer=watch.answer) as callers:
            await callers.turns(sessions, 1)
            for _ in range(ROUNDS):
                pairs = iter(commits.commits(2 * SAMPLES))
                plain += [first + second for first, second in zip(pairs, pairs, strict=True)]
                taken += await _round(callers, watch, sessions)
    return [
        Figure(
            name=f"latency.p{percent}",
            value=percentile(taken, percent) * 1000,
            unit="ms",
            floor=percentile(plain, percent) * 1000,
            floor_is="two commits, one after the other",
            goal=goal,
        )
        for percent, goal in ((50, 5), (99, 25))
    ]


async def _load(folder: Path) -> None:
    watch = Stopwatch()
    async with crowd(folder / "home", answer=watch.answer) as callers:
        for _ in range(ROUNDS):
            await _round(callers, watch, names("quiet", SESSIONS))


async def _round(callers: Crowd, watch: Stopwatch, sessions: list[str]) -> list[float]:
    taken: list[float] = []
    for sample in range(SAMPLES):
        await asyncio.sleep(QUIET_S)
        started = time.perf_counter()
        await callers.turn(sessions[sample % len(sessions)])
        taken.append(watch.asked_at - started)
    return taken
