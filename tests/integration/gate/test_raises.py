"""More to spend, by a raise or by other settings: what waited for it goes on, whatever is cut."""

from pathlib import Path

import pytest

from tests.integration.gate.spending import NOON, costs, outsider, paid, reply, spending, status
from wakeful.gate import budget_rows, parked
from wakeful.gate.budget_acts import Raise
from wakeful.models.model import Reply
from wakeful.models.scripted import Scripted, call
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules, DayLimits

SMALL = BudgetRules(money_per_day=0.04)


def nap(tokens: int) -> Reply:
    return costs(tokens, "", call("sleep", duration_ms=3_600_000))


async def refused_wake(runtime: Runtime, clock: ManualClock) -> None:
    """Let a sleep come to its end when nothing is left to wake it with."""
    await runtime.wait(await runtime.send("rest"))
    clock.advance(3_600)
    await wait_for(runtime, "stimulus.suppressed", lambda event: event.data["reason"] == "budget")


@pytest.mark.parametrize(
    ("rules", "wish"),
    [
        (SMALL, Raise(agent_id="main", money=1.0)),
        (BudgetRules(turns_per_day=0), Raise(agent_id="main", turns=1)),
        (
            BudgetRules(origins={"wake": DayLimits(turns_per_day=0)}),
            Raise(agent_id="main", turns=1, scope="origin:wake"),
        ),
    ],
)
async def test_who_could_not_be_woken_is_woken_at_once(rules: BudgetRules, wish: Raise):
    clock = ManualClock(NOON)
    model = paid([nap(4_000), costs(1, "good morning")])
    async with spending(model, rules, clock=clock) as runtime:
        await refused_wake(runtime, clock)
        (sleeper,) = await runtime.sleeps()
        waiting = (await status(runtime)).parked
        released = await runtime.services.budget_acts.increase(wish, "operator")
        woken = await wait_for(runtime, "sleep.woken")

    assert sleeper.refused == "budget"
    assert (waiting, released) == (1, 1)
    assert (woken.data["reason"], woken.data["slept_ms"]) == ("timer", 3_600_000)


async def test_a_raise_that_is_too_small_leaves_the_sleeper_asleep_and_marked():
    clock = ManualClock(NOON)
    async with spending(paid([nap(4_000)]), SMALL, clock=clock) as runtime:
        await refused_wake(runtime, clock)
        wish, before = Raise(agent_id="main", money=0.001), await runtime.cursor()
        await runtime.services.budget_acts.increase(wish, "operator")
        await wait_for(runtime, "stimulus.suppressed", since=before)
        (sleeper,) = await runtime.sleeps()

    assert sleeper.refused == "budget"
    assert sleeper.wake_at == NOON + 43_200_000


def lasting(model: Scripted, rules: BudgetRules, clock: ManualClock, home: Path) -> Runtime:
    settings = Settings(timezone="UTC", home=home)
    return spending(model, rules, clock=clock, settings=settings)


async def test_a_raise_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path):
    clock = ManualClock(NOON)
    wish = Raise(agent_id="main", money=1.0)
    async with lasting(paid([costs(4_000)]), SMALL, clock, tmp_path) as runtime:
        await reply(runtime)
        waits = await runtime.send("more?")
        await runtime.store.transact(
            lambda tx: runtime.services.budget_acts.increase_in(tx, wish, "operator"),
            locks=[budget_rows.lock("main")],
        )
    async with lasting(paid([costs(1, "thanks")]), SMALL, clock, tmp_path) as again:
        turn = await again.wait(waits)

    assert turn is not None
    assert turn.reply == "thanks"


async def test_settings_that_give_more_let_everything_go_on_at_the_next_start(tmp_path: Path):
    clock, more = ManualClock(NOON), BudgetRules(money_per_day=5.0)
    async with lasting(paid([nap(4_000)]), SMALL, clock, tmp_path) as runtime:
        await refused_wake(runtime, clock)
        waits = await runtime.accept(outsider(session="agent:main:other"))
    model = paid(lambda _request: costs(1, "thanks"))
    async with lasting(model, more, clock, tmp_path) as again:
        turn = await again.wait(waits)
        await wait_for(again, "sleep.woken")

    assert turn is not None


async def test_settings_that_give_more_let_everything_go_on_without_a_stop():
    clock = ManualClock(NOON)
    model = paid([nap(4_000), costs(1, "good morning")])
    async with spending(model, SMALL, clock=clock) as runtime:
        await refused_wake(runtime, clock)
        await runtime.reconfigure(
            agents=[Agent(model=model, budget=BudgetRules(money_per_day=5.0))]
        )
        await wait_for(runtime, "sleep.woken")


async def test_many_lanes_go_on_in_steps_and_none_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parked, "STEP", 2)
    clock = ManualClock(NOON)
    model = paid(lambda _request: costs(1, "thanks"))
    async with spending(model, BudgetRules(turns_per_day=0), clock=clock) as runtime:
        waiting = [
            await runtime.accept(outsider(session=f"agent:main:{number}")) for number in range(5)
        ]
        wish = Raise(agent_id="main", turns=9)
        released = await runtime.services.budget_acts.increase(wish, "operator")
        turns = [await runtime.wait(one) for one in waiting]

    assert released == 5
    assert all(turn is not None for turn in turns)
