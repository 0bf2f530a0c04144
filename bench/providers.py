"""Turns through a provider in a process of its own, beside bare streams of the same answers."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

from bench.crowd import ANSWER, PROMPT, Crowd, crowd, names
from bench.figures import Figure, Sense
from bench.fresh import ROOT, TIMEOUT_S, memory_mb
from bench.history import add_session
from bench.ledger import opened, prepare
from bench.voices import MODEL, BareVoice, question_of
from wakeful.models.catalog import find
from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.process import Providers, providers
from wakeful.vocabulary.message import AssistantMessage, Message, Text, UserMessage

DELTAS = {50: 2.0, 500: 1.5}  # and how many bare streams a whole turn may cost
SESSIONS = 40
TURNS_EACH = 2
ROUNDS = 5
HISTORIES = (10, 200, 1000)
TURNS = 20  # of each history
MOST_GROWTH = 2.0  # beside the bare stream's own
LEAST_GROWTH_MS = 0.2  # less than that nobody can measure
MOST_MEMORY_MB = 80
MOST_FIRST_MS = 200

WORD = "weather "


def measure(folder: Path) -> list[Figure]:
    _fill(folder / "home")
    with _stand_in(folder) as stand_in:
        starts = [_fresh(folder / f"fresh{number}") for number in range(5)]
        measured = asyncio.run(_measure(folder, stand_in))
        return [*measured, *_start_figures(starts)]


def load(folder: Path) -> None:
    with _stand_in(folder) as stand_in:
        _say(stand_in, 500)
        asyncio.run(_load(folder))


@contextmanager
def _stand_in(folder: Path) -> Generator[Providers]:
    """Run stand-ins, with an environment that leads to them."""
    with providers(folder) as stand_in:
        os.environ.update(stand_in.environment)
        _say(stand_in, 50)
        yield stand_in


def _say(stand_in: Providers, deltas: int) -> None:
    stand_in.plan(**{"": [Step(text=WORD * deltas, pieces=deltas)]})


async def _measure(folder: Path, stand_in: Providers) -> list[Figure]:
    bare = BareVoice(stand_in.port)
    async with crowd(folder / "home", model=MODEL) as callers:
        figures = [
            await _turns(callers, bare, stand_in, deltas, most) for deltas, most in DELTAS.items()
        ]
        _say(stand_in, 50)
        figures += await _histories(callers, bare)
    await bare.close()
    return figures


async def _turns(
    callers: Crowd, bare: BareVoice, stand_in: Providers, deltas: int, most: float
) -> Figure:
    """Return the CPU of a whole turn, and of the bare stream of the same answer."""
    _say(stand_in, deltas)
    question = question_of([UserMessage(text=PROMPT)])
    sessions = names(f"deltas{deltas}", SESSIONS)
    await callers.turns(sessions, 1)
    await bare.at_once(question, SESSIONS, 1)
    pairs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        started = time.process_time()
        await bare.at_once(question, SESSIONS, TURNS_EACH)
        between = time.process_time()
        await callers.turns(sessions, TURNS_EACH)
        pairs.append((time.process_time() - between, between - started))
    value, floor = (
        median(pair[place] for pair in pairs) / (SESSIONS * TURNS_EACH) * 1000 for place in (0, 1)
    )
    return Figure(
        name=f"providers.cpu_{deltas}",
        value=value,
        unit="ms",
        floor=floor,
        floor_is=f"CPU of a bare stream of {deltas} deltas",
        sense=Sense.AT_MOST,
        goal=most * floor,
    )


async def _histories(callers: Crowd, bare: BareVoice) -> list[Figure]:
    """Return what a turn costs after a long talk, and by how much more that is than after a short
    one, beside the bare stream's own growth.
    """
    talks = {length: question_of(_talk(length)) for length in HISTORIES}
    pairs: dict[int, list[tuple[float, float]]] = {length: [] for length in HISTORIES}
    for length in HISTORIES:
        await callers.turns([f"history:{length}"], 3)  # the first reads what is on disk
    for _ in range(TURNS):
        for length, question in talks.items():  # side by side: the machine has moods
            started = time.process_time()
            await bare.ask(question)
            between = time.process_time()
            await callers.turn(f"history:{length}")
            pairs[length].append((time.process_time() - between, between - started))
    found = {
        length: tuple(median(pair[place] for pair in each) * 1000 for place in (0, 1))
        for length, each in pairs.items()
    }
    short, bare_short = found[HISTORIES[0]]
    figures = [_history(HISTORIES[0], short, bare_short, None)]
    for length in HISTORIES[1:]:
        value, floor = found[length]
        figures.append(_history(length, value, floor, None))
        figures.append(
            Figure(
                name=f"providers.growth_{length}",
                value=value - short,
                unit="ms",
                floor=floor - bare_short,
                floor_is=f"what {length} messages more cost a bare stream",
                sense=Sense.AT_MOST,
                goal=MOST_GROWTH * max(floor - bare_short, LEAST_GROWTH_MS),
            )
        )
    return figures


def _history(length: int, value: float, floor: float, goal: float | None) -> Figure:
    return Figure(
        name=f"providers.history_{length}",
        value=value,
        unit="ms",
        floor=floor,
        floor_is=f"CPU of a bare stream after {length} messages",
        sense=Sense.AT_MOST,
        goal=goal,
    )


async def _load(folder: Path) -> None:
    async with crowd(folder / "home", model=MODEL) as callers:
        await callers.turns(names("providers", SESSIONS), TURNS_EACH)


def _start_figures(starts: list[dict[str, float]]) -> list[Figure]:
    return [
        Figure(
            name="providers.memory",
            value=median(start["memory_mb"] for start in starts),
            unit="MB",
            floor=median(start["memory_before_mb"] for start in starts),
            floor_is="the same process before its first question",
            sense=Sense.AT_MOST,
            goal=MOST_MEMORY_MB,
        ),
        Figure(
            name="providers.first_use",
            value=median(start["first_ms"] for start in starts),
            unit="ms",
            floor=median(start["second_ms"] for start in starts),
            floor_is="the second question",
            goal=MOST_FIRST_MS,
        ),
    ]


def _talk(length: int) -> list[Message]:
    answer = AssistantMessage(content=(Text(text=ANSWER),), provider="anthropic", model="m")
    question = UserMessage(text=PROMPT)
    talk: list[Message] = [question if at % 2 == 0 else answer for at in range(length)]
    return [*talk, question]


def _fill(home: Path) -> None:
    prepare(home)
    with opened(home) as ledger:
        numbers = count()
        for length in HISTORIES:
            add_session(ledger, f"agent:main:history:{length}", length, numbers, context=length)


def _fresh(home: Path) -> dict[str, float]:
    """Ask twice in a fresh process and return what each took."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.providers", str(home)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return json.loads(done.stdout)


async def _ask_twice(home: Path) -> dict[str, float]:
    find(MODEL)
    async with crowd(home, model=MODEL) as callers:
        before = memory_mb()
        times = [time.perf_counter()]
        for _ in range(2):
            await callers.turn("fresh")
            times.append(time.perf_counter())
        return {
            "memory_before_mb": before,
            "memory_mb": memory_mb(),
            "first_ms": (times[1] - times[0]) * 1000,
            "second_ms": (times[2] - times[1]) * 1000,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_ask_twice(Path(sys.argv[1])))))
