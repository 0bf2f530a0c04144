"""Whatever the settings, a day comes as foretold."""

import asyncio
from datetime import UTC, datetime

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.forecast.life import (
    PATIENT,
    AssumedModel,
    Life,
    came,
    differences,
    foretold,
)
from tests.integration.forecast.test_agreement import ELSEWHERE, MAIN, set_job
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules, DayLimits
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.proactive import ProactiveRules

CHANGE = round(datetime(2027, 3, 27, 12, tzinfo=UTC).timestamp() * 1000)  # the day before one
DAY_MS = 86_400_000

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a day takes a second
TIMES = st.integers(0, 95).map(lambda quarter: f"{quarter // 4:02}:{quarter % 4 * 15:02}")
HOURS = st.none() | st.builds(DailyHours, start=TIMES, end=TIMES)
TICKS = st.builds(
    ProactiveRules,
    enabled=st.booleans(),
    tick_interval_secs=st.integers(3_600, 20_000),
    jitter_pct=st.integers(0, 100),
    initial_greeting=st.booleans(),
    daily_turn_budget=st.integers(0, 12),
    light_context=st.booleans(),
)
HEARTBEATS = st.builds(
    HeartbeatRules,
    every=st.sampled_from([0, "97m", "3h", "5h"]),
    prompt=st.sampled_from([None, "Anything?"]),
    light_context=st.booleans(),
    active_hours=HOURS,
)
NOT_LIMITED: dict[str, DayLimits] = {}
ORIGINS = (NOT_LIMITED, {"tick": DayLimits(turns_per_day=3)})
BUDGETS = st.builds(
    BudgetRules,
    money_per_day=st.none() | st.sampled_from([0.01, 0.03, 0.2]),
    turns_per_day=st.none() | st.integers(1, 12),
    reserve_for_people=st.sampled_from([0.0, 0.2, 0.5]),
    origins=st.sampled_from(ORIGINS),
)
JOBS = st.lists(
    st.tuples(
        st.integers(60_000, DAY_MS), st.sampled_from("abc"), st.sampled_from([MAIN, ELSEWHERE])
    ),
    max_size=8,
    unique_by=lambda job: job[0] // 1_000,
)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=NO_SHRINKING
)
@given(ticks=TICKS, heart=HEARTBEATS, budget=BUDGETS, quiet=HOURS, jobs=JOBS)
def test_a_day_comes_as_foretold(
    ticks: ProactiveRules,
    heart: HeartbeatRules,
    budget: BudgetRules,
    quiet: DailyHours | None,
    jobs: list[tuple[int, str, str]],
) -> None:
    model = AssumedModel()
    agent = Agent(
        model=model,
        limits=PATIENT,
        proactive=ticks,
        heartbeat=heart,
        budget=budget,
        quiet_hours=quiet,
    )
    life = Life([agent], Settings(timezone="Europe/Berlin"), ManualClock(CHANGE), model)

    async def differs() -> list[str]:
        async with life.runtime as runtime:
            await life.begin()
            for session in (MAIN, ELSEWHERE):  # whose sizes are known from then on
                await runtime.send("hello", session=session)
            now = await life.begin()
            for after_ms, name, session in jobs:
                await set_job(runtime, now + after_ms, f"cron:{name}", session)
            forecast = await runtime.forecast(1)
            await life.run_until(forecast.until)
            return differences(foretold(forecast), await came(runtime, now))

    assert asyncio.run(differs()) == []
