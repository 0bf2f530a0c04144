"""However a turn ends, nothing that it asked or began is left open."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.engine.looking import turn_of
from tests.integration.engine.stages import CountingClock, Gate
from tests.integration.engine.test_store_outages import NO_WORDS
from wakeful.lanes.lane import ENDING_TRIES, LONGEST_RETRY_S
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, says
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.stimulus import Receipt

GONE = "agent:gone:main"


async def left_open(runtime: Runtime) -> list[str]:
    """Return what nobody will ever settle."""
    rows = await runtime.store.read(
        "SELECT 'ask of step ' || step FROM asks WHERE state = 'asked' "
        "UNION ALL SELECT 'call of ' || name FROM tool_calls WHERE state = 'intended'"
    )
    return [row[0] for row in rows]


async def cut_off(home: Path, *, in_tool: bool) -> Receipt:
    """Leave a turn of an agent open, in a call or in a question, and end the runtime."""
    gate, pause = Gate(), Pause("thinking")
    script = [says("", call("gate"))] if in_tool else [pause]
    agents = [Agent("gone", model=Scripted(script), tools=[gate.tool]), Agent("main")]
    async with Runtime(agents=agents, settings=Settings(home=home, drain_s=0)) as runtime:
        receipt = await runtime.send("go", session=GONE)
        await (gate.entered if in_tool else pause.reached).wait()
    return receipt


@pytest.mark.parametrize("in_tool", [True, False])
@pytest.mark.parametrize("how", ["stop", "delete"])
async def test_the_turn_of_an_agent_that_is_gone(tmp_path: Path, how: str, in_tool: bool):
    receipt = await cut_off(tmp_path, in_tool=in_tool)
    stays = [Agent("main")]
    async with Runtime(agents=stays, settings=Settings(home=tmp_path)) as runtime:
        before = await left_open(runtime)
        await (runtime.stop(GONE) if how == "stop" else runtime.delete(GONE))
        turn = await turn_of(runtime, receipt)
        after = await left_open(runtime)

    assert before == (["call of gate"] if in_tool else [])
    assert turn.state is TurnState.STOPPED
    assert after == []


@pytest.mark.parametrize("in_tool", [True, False])
async def test_a_turn_that_cannot_be_reopened(tmp_path: Path, in_tool: bool):
    clock = ManualClock()
    receipt = await cut_off(tmp_path, in_tool=in_tool)
    store = await open_sqlite(tmp_path / "wakeful.db", clock=clock)
    await store.transact(lambda tx: tx.run("UPDATE entries SET body = 'not JSON'"))
    await store.close()
    agents = [Agent("gone", model=Scripted([])), Agent("main")]
    async with Runtime(agents=agents, clock=clock, settings=Settings(home=tmp_path)) as runtime:
        async with asyncio.timeout(10):
            while await runtime.store.read("SELECT 1 FROM turns WHERE state = 'open'"):
                clock.advance(1)  # it is tried again every second
        turn = await turn_of(runtime, receipt)
        after = await left_open(runtime)

    assert turn.error_kind == "poisoned"
    assert after == []


async def test_a_turn_whose_last_words_cannot_be_written():
    clock, gate = CountingClock(), Gate()
    agent = Agent(model=Scripted([says("", call("gate"))]), tools=[gate.tool])
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("go")
        await gate.entered.wait()
        await runtime.store.transact(lambda tx: tx.run(NO_WORDS))
        clock.advance(agent.config.limits.wall_s)
        for _ in range(ENDING_TRIES):
            await clock.asleep.wait()
            clock.asleep.clear()
            clock.advance(LONGEST_RETRY_S)
        turn = await turn_of(runtime, receipt)
        after = await left_open(runtime)

    assert (turn.state, turn.reply) == (TurnState.FAILED, None)
    assert after == []
