"""A program lets sessions rest, turns heartbeats and looks after the money by verbs."""

import pytest

from tests.integration.gate.spending import NOON, costs, paid, spending
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.stimulus import Outcome

TWO_HOURS_S = 7_200


def resting(*lines: str) -> Runtime:
    agent = Agent(model=Scripted(list(lines)), heartbeat=HeartbeatRules(every="30m"))
    return Runtime(agents=[agent], clock=ManualClock(NOON))


async def test_a_program_lets_a_session_sleep_and_wakes_it():
    async with resting("well", "good morning") as runtime:
        await runtime.ask("hello")
        early = await runtime.wake("main")
        entered = await runtime.sleep("main", TWO_HOURS_S, "the build runs")
        (asleep,) = await runtime.sleeps()
        (agent,) = await runtime.agents()
        woken = await runtime.wake("main")

    assert entered.wake_at == asleep.wake_at == NOON + TWO_HOURS_S * 1000
    assert (asleep.session_key, asleep.reason) == ("agent:main:main", "the build runs")
    assert [one.reason for one in agent.sleeps] == ["the build runs"]
    assert (early.woken, early.reason, woken.woken) == (False, "awake", True)


async def test_a_sleep_of_a_session_that_is_not_there_is_refused():
    async with resting() as runtime:
        with pytest.raises(NotFound):
            await runtime.sleep("nowhere", TWO_HOURS_S)
        with pytest.raises(InvalidInput, match="reason"):
            await runtime.sleep("main", 60, reason=7)  # pyright: ignore[reportArgumentType]


async def test_a_program_turns_a_heartbeat_off_and_on_and_asks_for_one():
    async with resting("all is well") as runtime:
        on = await runtime.heartbeat()
        off = await runtime.set_heartbeat(is_on=False)
        back = await runtime.set_heartbeat("main", is_on=True)
        receipt = await runtime.beat()
        with pytest.raises(NotFound):
            await runtime.heartbeat("nobody")

    assert on.next_due_at == NOON + 1_800_000
    assert (off.enabled, off.next_due_at) == (False, None)
    assert back.enabled
    assert receipt.outcome is not Outcome.SUPPRESSED


async def test_a_program_sees_and_raises_a_budget():
    model = paid([costs(4_000), costs(1, "thanks")])
    async with spending(model, BudgetRules(money_per_day=0.04)) as runtime:
        await runtime.ask("hello")
        parked = await runtime.send("more?")
        short, *_ = await runtime.budgets("main")
        raised = await runtime.raise_budget(1.0, turns=5)
        turn = await runtime.wait(parked)
        every = await runtime.budgets()
        with pytest.raises(InvalidInput, match="money"):
            await runtime.raise_budget()

    assert (short.parked, short.money.left_for_others) == (1, 0.0)
    assert (raised.money.cap, raised.turns.cap) == (1.04, 305)
    assert turn is not None
    assert turn.reply == "thanks"
    assert every[0].agent_id == "main"
