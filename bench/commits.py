"""Commits per turn, counted by SQLite itself."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from bench.crowd import ANSWER, crowd
from bench.figures import Figure, Sense
from wakeful.models.model import Request
from wakeful.models.scripted import Line, call, says
from wakeful.tools.tool import Effect, tool
from wakeful.vocabulary.message import ToolMessage

PLAIN = 3  # accept; open and ask; reply and close
TOOL_STEP = 2  # reply and intent; result and ask
TURNS = 50


class Counter:
    """How many write transactions were committed."""

    def __init__(self) -> None:
        self.commits = 0

    def note(self) -> bool:
        self.commits += 1
        return False


@tool(effect=Effect.READ)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def measure(folder: Path) -> list[Figure]:
    plain = asyncio.run(_per_turn(folder / "plain", calls_tool=False))
    with_tool = asyncio.run(_per_turn(folder / "tool", calls_tool=True))
    return [
        _figure("commits", plain, PLAIN),
        _figure("commits.tool_step", with_tool - plain, TOOL_STEP),
    ]


def load(folder: Path) -> None:
    asyncio.run(_per_turn(folder / "tool", calls_tool=True))


async def _per_turn(home: Path, *, calls_tool: bool) -> float:
    def answer(request: Request) -> Line:
        if calls_tool and not isinstance(request.messages[-1], ToolMessage):
            return says("", call("add", a=1, b=2))
        return ANSWER

    with _counting() as counter:
        async with crowd(home, answer=answer, tools=[add]) as callers:
            await callers.turns(["main"], 1)
            before = counter.commits
            await callers.turns(["main"], TURNS)
            return (counter.commits - before) / TURNS


@contextmanager
def _counting() -> Generator[Counter]:
    counter = Counter()

    def watch(connection: apsw.Connection) -> None:
        connection.set_commit_hook(counter.note)

    apsw.connection_hooks.append(watch)
    try:
        yield counter
    finally:
        apsw.connection_hooks.remove(watch)


def _figure(name: str, value: float, rule: int) -> Figure:
    return Figure(
        name=name,
        value=value,
        unit="commits",
        floor=rule,
        floor_is="what the rules allow",
        sense=Sense.AT_MOST,
        goal=rule,
    )
