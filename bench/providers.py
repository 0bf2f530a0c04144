"""Turns through a provider in a process of its own, beside bare calls of the library."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.crowd import ANSWER, PROMPT, crowd, names
from bench.figures import Figure, Sense
from bench.fresh import ROOT, TIMEOUT_S, memory_mb
from wakeful.models.catalog import find
from wakeful.models.model import Request
from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.process import providers
from wakeful.tools.builtin import default_tools
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary.message import AssistantMessage, Message, Text, UserMessage
from wakeful.vocabulary.stimulus import Trust

MODEL = "anthropic:claude-opus-5"
DELTAS = 50
SESSIONS = 100
TURNS_EACH = 2
ROUNDS = 3
MOST_MEMORY_MB = 130
MOST_TIMES = 2  # what a turn may cost, in bare calls

TEXT = ANSWER * 4


def measure(folder: Path) -> list[Figure]:
    with providers(folder) as stand_in:
        stand_in.plan(**{"": [Step(text=TEXT, pieces=DELTAS)]})
        os.environ.update(stand_in.environment)
        starts = [_fresh(folder / f"fresh{number}") for number in range(3)]
        return [*asyncio.run(_measure(folder)), *_start_figures(starts)]


def load(folder: Path) -> None:
    with providers(folder) as stand_in:
        stand_in.plan(**{"": [Step(text=TEXT, pieces=DELTAS)]})
        os.environ.update(stand_in.environment)
        asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    turns = SESSIONS * TURNS_EACH
    rates: list[tuple[float, float]] = []
    cpus: list[tuple[float, float]] = []
    bare = _Bare()
    await bare.calls(1)
    async with crowd(folder / "home", model=MODEL) as callers:
        await callers.turns(names("warm", SESSIONS), 1)
        for number in range(ROUNDS):
            sessions = names(f"round{number}", SESSIONS)
            started = _now()
            await bare.calls(SESSIONS)
            between = _now()
            await callers.turns(sessions, TURNS_EACH)
            ended = _now()
            rates.append((turns / (ended[0] - between[0]), turns / (between[0] - started[0])))
            cpus.append(
                ((ended[1] - between[1]) / turns * 1000, (between[1] - started[1]) / turns * 1000)
            )
    await bare.close()
    cpu, floor = (median(pair[place] for pair in cpus) for place in (0, 1))
    return [
        Figure(
            name="providers",
            value=median(value for value, _ in rates),
            unit="/s",
            floor=median(floor for _, floor in rates),
            floor_is=f"bare calls of the library, {DELTAS} deltas each",
            sense=Sense.AT_LEAST,
        ),
        Figure(
            name="providers.cpu",
            value=cpu,
            unit="ms",
            floor=floor,
            floor_is="CPU of a bare call of the library",
            sense=Sense.AT_MOST,
            goal=MOST_TIMES * floor,
        ),
    ]


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
        ),
    ]


class _Bare:
    """The library alone: the same questions, nothing written."""

    def __init__(self) -> None:
        # Heavy, and only for those who measure this.
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.models import infer_model

        from wakeful.models.thoughts import takes_back
        from wakeful.models.translation import history, parameters

        self._ask = model_request_stream
        self._model = infer_model(MODEL)
        tools = Toolbox(list(default_tools())).specs(Trust.OPERATOR)
        requests = [Request(system="s", messages=_talk(turn)) for turn in range(TURNS_EACH)]
        takes = takes_back(self._model)
        self._questions = [history(request, takes) for request in requests]
        self._parameters = parameters(Request(system="s", messages=(), tools=tools))

    async def calls(self, sessions: int) -> None:
        """Ask what that many sessions would, each one after the other."""
        async with asyncio.TaskGroup() as group:
            for _ in range(sessions):
                group.create_task(self._session())

    async def close(self) -> None:
        assert self._model.provider is not None
        await self._model.provider.client.close()

    async def _session(self) -> None:
        for question in self._questions:
            async with self._ask(
                self._model,
                question,
                model_settings={"cache": True},
                model_request_parameters=self._parameters,
            ) as streamed:
                async for _ in streamed:
                    pass
                streamed.get()


def _talk(turns: int) -> list[Message]:
    answer = AssistantMessage(content=(Text(text=TEXT),), provider="anthropic", model="m")
    question = UserMessage(text=PROMPT)
    return [*(message for _ in range(turns) for message in (question, answer)), question]


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


def _now() -> tuple[float, float]:
    """Return the wall time and the CPU time of all threads, in seconds."""
    return time.perf_counter(), time.process_time()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_ask_twice(Path(sys.argv[1])))))
