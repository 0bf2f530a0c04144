"""How many commits a turn costs, counted by SQLite itself.

What follows behind the turns (the index) does not count, whenever it comes.
"""

import asyncio
from collections.abc import Generator
from pathlib import Path

import apsw
import pytest

from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, Scripted, call, in_memory, says
from wakeful.tools.tool import Effect, tool


class Commits:
    """Counts the commits of every connection that is opened while it watches.

    Those that only write what is searched do not count.
    """

    def __init__(self) -> None:
        self.count = 0
        self._counts = False

    def watch(self, connection: apsw.Connection) -> None:
        connection.set_update_hook(self._on_row)
        connection.set_commit_hook(self._on_commit)

    def _on_row(self, kind: int, database: str, table: str, row: int) -> None:
        self._counts = self._counts or not table.startswith("search_")

    def _on_commit(self) -> bool:
        self.count += self._counts
        self._counts = False
        return False


@pytest.fixture
def commits() -> Generator[Commits, None, None]:
    counter = Commits()
    apsw.connection_hooks.append(counter.watch)
    yield counter
    apsw.connection_hooks.remove(counter.watch)


async def cost(runtime: Runtime, commits: Commits) -> int:
    before = commits.count
    await runtime.wait(await runtime.send("go"))
    return commits.count - before


def acting(effect: Effect):
    @tool(effect=effect, name="act")
    def act() -> str:
        """Act."""
        return "done"

    return act


async def test_a_plain_answer_is_three_commits(commits: Commits, tmp_path: Path):
    async with in_memory(
        Scripted(lambda _: "hi"), settings=Settings(home=tmp_path), clock=ManualClock()
    ) as runtime:
        await cost(runtime, commits)
        assert await cost(runtime, commits) == 3  # accept; open and ask; reply and close


@pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT, Effect.EFFECT])
async def test_a_step_with_a_tool_adds_two(commits: Commits, tmp_path: Path, effect: Effect):
    model = Scripted(["first", says("", call("act")), "done"])
    runtime = in_memory(
        model, tools=[acting(effect)], settings=Settings(home=tmp_path), clock=ManualClock()
    )
    async with runtime:
        await cost(runtime, commits)
        assert await cost(runtime, commits) == 5


async def test_more_calls_in_a_step_add_one_each_and_reads_none(commits: Commits, tmp_path: Path):
    reads = [call("act", call_id=f"{n}") for n in range(5)]
    model = Scripted(["first", says("", *reads), "done"])
    runtime = in_memory(
        model, tools=[acting(Effect.READ)], settings=Settings(home=tmp_path), clock=ManualClock()
    )
    async with runtime:
        await cost(runtime, commits)
        assert await cost(runtime, commits) == 5


async def test_ledger_tools_need_no_commit_of_their_own(commits: Commits, tmp_path: Path):
    notes = [call("act", call_id=f"{n}") for n in range(3)]
    model = Scripted(["first", says("", *notes), "done"])
    runtime = in_memory(
        model, tools=[acting(Effect.LEDGER)], settings=Settings(home=tmp_path), clock=ManualClock()
    )
    async with runtime:
        await cost(runtime, commits)
        assert await cost(runtime, commits) == 4


async def test_a_hundred_callers_share_commits(commits: Commits, tmp_path: Path):
    async with in_memory(
        Scripted(lambda _: "hi"), settings=Settings(home=tmp_path), clock=ManualClock()
    ) as runtime:
        await runtime.halt()
        before = commits.count
        await asyncio.gather(*(runtime.send("x", session=f"dm:{n}") for n in range(100)))
        assert commits.count - before < 20
