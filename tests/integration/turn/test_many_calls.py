"""A reply may hold many tool calls; what they cost grows with their number, and no faster."""

from collections.abc import Iterator

import pytest

from tests.conformance.engine.test_two_nodes import MAIN, Node
from wakeful.broker import lane_rows
from wakeful.models.model import MOST_CALLS
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.kit import Scripted, call, in_memory, says
from wakeful.turn import calls
from wakeful.turn.agent import Agent
from wakeful.turn.attempt import Left, Next, StepState
from wakeful.turn.commit import TurnCommit, commit_step
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.message import ToolCall


class Counted(tuple[ToolCall, ...]):
    """Calls that count how often somebody looks through all of them."""

    looks = 0

    def __iter__(self) -> Iterator[ToolCall]:
        self.looks += 1
        return super().__iter__()


def many(count: int) -> list[ToolCall]:
    return [call("nothing", f"c{number}") for number in range(count)]


@pytest.mark.parametrize("ends", ["settled one by one", "skipped"])
async def test_the_calls_of_a_reply_are_looked_through_a_few_times_however_many_there_are(
    ends: str,
):
    store = await open_sqlite(None, clock=SystemClock())
    node = Node(store, "node")
    await node.bus.start()
    await node.accept("work")
    opened = await node.claim()
    assert opened is not None
    counted = Counted(many(MOST_CALLS))

    def act(commit: TurnCommit) -> Next:
        commit.step = StepState(counted)
        while ends != "skipped" and commit.step.open_calls:
            (next_call,) = calls.next_group(commit)
            assert calls.settle_at_once(commit, next_call)
        calls.skip_open(commit, "not needed")
        assert not commit.step.open_calls
        return Left(reason="looked through")

    def write(tx: Tx) -> Next:
        return commit_step(node.deps, tx, opened.attempt, act).next

    await store.transact(write, locks=[lane_rows.lock(MAIN)])
    rows = await store.read("SELECT position, state FROM tool_calls ORDER BY position")
    await store.close()

    assert [row[0] for row in rows] == list(range(MOST_CALLS))
    assert counted.looks < 5


async def test_a_reply_of_thousands_of_calls_is_refused_before_anything_is_written():
    async with in_memory([says("", *many(8_000))] * 2) as runtime:
        turn = await runtime.wait(await runtime.send("go"))
        rows = await runtime.store.read("SELECT COUNT(*) FROM tool_calls")

    assert turn is not None
    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert turn.reply == "the model called 8000 tools at once; 1000 are allowed"
    assert rows[0][0] == 0


async def test_a_reply_of_as_many_calls_as_are_allowed_is_carried_out():
    limits = Limits(tool_calls=MOST_CALLS)
    agent = Agent(model=Scripted([says("", *many(MOST_CALLS)), "done"]), limits=limits)
    async with Runtime(agents=[agent]) as runtime:
        turn = await runtime.wait(await runtime.send("go"))

    assert turn is not None
    assert (turn.state, turn.reply, turn.tool_calls) == (TurnState.DONE, "done", MOST_CALLS)
