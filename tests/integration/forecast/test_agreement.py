"""What a forecast says is what the runtime then does, in all that the schedule determines."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.integration.forecast.life import (
    PATIENT,
    AssumedModel,
    Life,
    came,
    differences,
    foretold,
)
from wakeful.automations.wishes import Maker, Wish
from wakeful.gate.gate import Asked, WakeGate
from wakeful.gate.wakes import GateVerdict, Wake, everything
from wakeful.models.prices import Price
from wakeful.models.tariffs import UNPRICED, Tariff
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, operator_draft
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.vocabulary.automation import CronSchedule, EverySchedule, SystemEvent
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.forecast import Basis, Forecast, What
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.stimulus import OPERATOR, Priority, Trust

# Two days before clocks in Berlin are moved, in spring and in autumn.
SPRING = round(datetime(2027, 3, 26, 10, tzinfo=UTC).timestamp() * 1000)
AUTUMN = round(datetime(2026, 10, 23, 10, tzinfo=UTC).timestamp() * 1000)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NIGHT = DailyHours(start="23:00", end="06:30")
BERLIN = Settings(timezone="Europe/Berlin")
MAIN = "agent:main:main"
ELSEWHERE = "agent:main:web:chat"
QUIET_HEART = HeartbeatRules(every=0)


async def set_job(runtime: Runtime, due_at: int, name: str, session: str = MAIN) -> None:
    """Have something filed at an instant that nobody said."""
    draft = operator_draft(
        session, f"Do {name}.", kind=Kind.AUTOMATION, priority=Priority.LATER, source=name
    )
    timer = Timer(
        id=f"stimulus {name} {due_at}",
        due_at=due_at,
        kind="stimulus",
        target=session,
        payload=msgspec.json.encode(draft).decode(),
    )
    await runtime.store.transact(lambda tx: timers.put(tx, timer))


async def said_in(runtime: Runtime, session: str, clock: ManualClock, life: Life) -> None:
    """Begin a conversation and let its answer come."""
    await runtime.send("hello", session=session)
    await life.run_until(clock.now() + 60_000)


@pytest.mark.parametrize("now", [SPRING, AUTUMN])
async def test_a_week_comes_as_foretold_where_clocks_are_moved(now: int, tmp_path: Path) -> None:
    (tmp_path / "HEARTBEAT.md").write_text("Look after the plants.")
    model, day = AssumedModel(), DailyHours(start="08:00", end="22:00")
    agents = [
        Agent(
            "main",
            model=model,
            limits=PATIENT,
            workspace=tmp_path,
            proactive=ProactiveRules(enabled=True, tick_interval_secs=7_200),
            heartbeat=HeartbeatRules(every="3h", active_hours=day),
            budget=BudgetRules(money_per_day=0.05),
            quiet_hours=NIGHT,
        ),
        Agent(
            "other",
            model=model,
            limits=PATIENT,
            proactive=ProactiveRules(enabled=True, tick_interval_secs=14_400, daily_turn_budget=3),
            heartbeat=HeartbeatRules(every="5h", prompt="Anything?", light_context=False),
        ),
    ]
    life = Life(agents, BERLIN, ManualClock(now), model)
    async with life.runtime as runtime:
        now = await life.begin()
        forecast = await runtime.forecast()

        await life.run_until(forecast.until)

        assert forecast.until == now + 7 * DAY_MS
        assert {row.source for row in forecast.rows} == {"tick", "heartbeat"}
        assert {reason for row in forecast.rows for reason in row.suppressed} >= {
            "budget",
            "quiet-hours",
            "active-hours",
        }
        assert differences(foretold(forecast), await came(runtime, now)) == []


async def test_what_is_parked_and_deferred_goes_on_as_foretold() -> None:
    model = AssumedModel()
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ProactiveRules(enabled=True, tick_interval_secs=3 * 3_600),
        heartbeat=QUIET_HEART,
        quiet_hours=NIGHT,
        budget=BudgetRules(turns_per_day=12),
    )
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        await life.begin()
        await said_in(runtime, ELSEWHERE, life.clock, life)
        now = life.clock.now()
        for day in range(3):
            for hour in range(0, 24, 2):
                at = now + day * DAY_MS + hour * HOUR_MS + 1_000
                await set_job(runtime, at, "cron:news")
                await set_job(runtime, at + 4_000, "cron:mail")  # while the other one runs
                await set_job(runtime, at, "cron:far", ELSEWHERE)
        forecast = await runtime.forecast(3)

        await life.run_until(forecast.until)

        by_source = {row.source: row for row in forecast.rows}
        assert by_source["cron:mail"].deferred > 0
        assert by_source["cron:mail"].collisions > 0
        assert by_source["cron:news"].parked > 0
        parked = [line for line in forecast.timeline if line.what is What.PARKED]
        assert {line.reason for line in parked} == {"quiet-hours", "budget"}
        assert all(line.until is not None for line in parked)
        assert differences(foretold(forecast), await came(runtime, now)) == []


async def test_jobs_run_as_foretold_where_clocks_are_moved() -> None:
    model = AssumedModel()
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ProactiveRules(enabled=True, tick_interval_secs=4 * 3_600),
        heartbeat=HeartbeatRules(every="6h"),
        quiet_hours=NIGHT,
    )
    life = Life([agent], BERLIN, ManualClock(SPRING), model)
    jobs = [
        Wish(name="news", message="Read.", schedule=CronSchedule(expr="0 9 * * *"), isolated=True),
        Wish(
            name="gap",
            message="In the gap.",
            schedule=CronSchedule(expr="30 2 * * *"),
            session_key=MAIN,
            respect_quiet_hours=True,
        ),
        Wish(
            name="often",
            message="Often.",
            schedule=EverySchedule(every_s=3_600),
            session_key=ELSEWHERE,
            respect_quiet_hours=True,
        ),
        Wish(
            name="event",
            payload=SystemEvent(text="An hour has passed."),
            schedule=EverySchedule(every_s=7_000),
            session_key=MAIN,
        ),
    ]
    async with life.runtime as runtime:
        await life.begin()
        await said_in(runtime, ELSEWHERE, life.clock, life)
        maker = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name="me", is_person=True)
        for job in jobs:
            await runtime.services.automations.add(job, maker)
        now = life.clock.now()
        forecast = await runtime.forecast(4)

        await life.run_until(forecast.until)

        by_source = {row.source: row for row in forecast.rows}
        assert {"cron:news", "cron:gap", "cron:often", "cron:event"} <= by_source.keys()
        assert by_source["cron:news"].turns == 4
        assert by_source["cron:often"].parked > 0
        assert by_source["cron:often"].suppressed["overlap"] > 0
        assert differences(foretold(forecast), await came(runtime, now)) == []


async def test_a_sleeper_wakes_as_foretold() -> None:
    model = AssumedModel()
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ProactiveRules(enabled=True, tick_interval_secs=7_200),
        heartbeat=HeartbeatRules(every="2h", prompt="Anything?"),
        quiet_hours=NIGHT,
    )
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        now = await life.begin()
        await runtime.sleep("main", 14 * 3_600)  # its end lies in the quiet hours
        forecast = await runtime.forecast(2)

        await life.run_until(forecast.until)

        by_source = {row.source: row for row in forecast.rows}
        # Refused in the night; at its end the timer of the sleep and that of the hours are due.
        assert (by_source["wake"].fires, by_source["wake"].turns) == (2, 1)
        assert by_source["heartbeat"].suppressed["asleep"] > 0
        assert differences(foretold(forecast), await came(runtime, now)) == []


async def test_turns_are_taken_to_be_like_those_before() -> None:
    model = AssumedModel()
    model.bases["tick"] = (25.0, None, 700)
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ProactiveRules(enabled=True, tick_interval_secs=7_200),
        heartbeat=QUIET_HEART,
    )
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        await life.begin()
        await life.run_until(life.clock.now() + DAY_MS)
        now = life.clock.now()

        forecast = await runtime.forecast(2)

        (usual,) = forecast.assumptions
        assert (usual.basis, usual.turn_s, usual.output) == (Basis.HISTORY, 25.0, 700)
        model.bases["tick"] = (usual.turn_s, usual.input, usual.output)
        await life.run_until(forecast.until)
        assert differences(foretold(forecast), await came(runtime, now)) == []
        (row,) = forecast.rows
        assert row.money_p90 > row.money_p50


@pytest.mark.parametrize("tariff", [UNPRICED, Tariff(price=Price())])
async def test_what_has_no_price_is_said_not_to_have_one(tariff: Tariff) -> None:
    model = AssumedModel(tariff)
    rules = ProactiveRules(enabled=True, tick_interval_secs=7_200)
    agent = Agent(model=model, limits=PATIENT, proactive=rules, heartbeat=QUIET_HEART)
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        now = await life.begin()
        forecast = await runtime.forecast(1)

        await life.run_until(forecast.until)

        (row,) = forecast.rows
        assert row.unpriced == (row.calls if tariff is UNPRICED else 0)
        assert forecast.assumptions[0].cost == (None if tariff is UNPRICED else 0.0)
        assert differences(foretold(forecast), await came(runtime, now)) == []


async def test_a_forecast_that_forgets_the_gate_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = AssumedModel()
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ProactiveRules(enabled=True, tick_interval_secs=7_200),
        heartbeat=QUIET_HEART,
        budget=BudgetRules(turns_per_day=3),
    )
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        now = await life.begin()
        honest = await runtime.forecast(1)
        with monkeypatch.context() as mutant:
            mutant.setattr(WakeGate, "may_wake", _let_all_wake)
            careless = await runtime.forecast(1)

        await life.run_until(honest.until)

        truth = await came(runtime, now)
        assert differences(foretold(honest), truth) == []
        assert any("suppressed" in one for one in differences(foretold(careless), truth))


async def test_the_history_that_each_tick_sends_again_is_in_the_cost() -> None:
    model = AssumedModel()
    rules = ProactiveRules(enabled=True, tick_interval_secs=3_600, jitter_pct=0)
    agent = Agent(model=model, limits=PATIENT, proactive=rules, heartbeat=QUIET_HEART)
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        await life.begin()

        forecast = await runtime.forecast(1)

        (row,) = forecast.rows
        (first,) = forecast.assumptions
        grown = sum(500 * number for number in range(row.calls))
        assert row.input > row.calls * first.input + grown


async def test_of_one_agent_only_what_is_its_own_is_foretold() -> None:
    model = AssumedModel()
    rules = ProactiveRules(enabled=True, tick_interval_secs=3_600)
    agents = [
        Agent(name, model=model, limits=PATIENT, proactive=rules, heartbeat=QUIET_HEART)
        for name in ("main", "other")
    ]
    life = Life(agents, BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        await life.begin()

        whole, part = await runtime.forecast(1), await runtime.forecast(1, agent="other")

        assert _of(whole, "other") == _of(part, "other")
        assert {row.agent_id for row in part.rows} == {"other"}


async def test_a_turn_that_runs_is_taken_to_end_at_once() -> None:
    model = AssumedModel()
    rules = ProactiveRules(enabled=True, tick_interval_secs=3_600, jitter_pct=0)
    agent = Agent(model=model, limits=PATIENT, proactive=rules, heartbeat=QUIET_HEART)
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        await life.rest()  # the greeting asks its model now

        forecast = await runtime.forecast(1)

        assert forecast.timeline[0].at == forecast.since + HOUR_MS
        await life.begin()


async def test_a_halted_agent_is_foretold_to_do_nothing() -> None:
    model = AssumedModel()
    rules = ProactiveRules(enabled=True, tick_interval_secs=3_600)
    agent = Agent(model=model, limits=PATIENT, proactive=rules, heartbeat=QUIET_HEART)
    life = Life([agent], BERLIN, ManualClock(AUTUMN), model)
    async with life.runtime as runtime:
        now = await life.begin()
        await runtime.halt()
        forecast = await runtime.forecast(1)

        await life.run_until(forecast.until)

        (row,) = forecast.rows
        assert (row.turns, row.suppressed) == (0, {"halted": row.fires})
        assert differences(foretold(forecast), await came(runtime, now)) == []


def _let_all_wake(
    _gate: WakeGate, tx: Tx, wakes: Sequence[Wake], asked: Asked | None = None
) -> Sequence[GateVerdict]:
    return everything(tx, wakes)


def _of(forecast: Forecast, agent_id: str) -> object:
    rows = [row for row in forecast.rows if row.agent_id == agent_id]
    return rows, [line for line in forecast.timeline if f":{agent_id}:" in line.session_key]
