"""What a forecast says is what the runtime then does, in all that the schedule determines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.integration.forecast.life import PATIENT, AssumedModel, Life, came, differences, foretold
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.proactive import ProactiveRules

# Two days before clocks in Berlin are moved, in spring and in autumn.
SPRING = round(datetime(2027, 3, 26, 10, tzinfo=UTC).timestamp() * 1000)
AUTUMN = round(datetime(2026, 10, 23, 10, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000
NIGHT = DailyHours(start="23:00", end="06:30")


@pytest.mark.parametrize("now", [SPRING, AUTUMN])
async def test_a_week_comes_as_foretold_where_clocks_are_moved(now: int, tmp_path: Path) -> None:
    (tmp_path / "HEARTBEAT.md").write_text("Look after the plants.")
    model = AssumedModel()
    agents = [
        Agent(
            "main",
            model=model,
            limits=PATIENT,
            workspace=tmp_path,
            proactive=ProactiveRules(enabled=True, tick_interval_secs=7_200),
            heartbeat=HeartbeatRules(
                every="3h", active_hours=DailyHours(start="08:00", end="22:00")
            ),
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
    life = Life(agents, Settings(timezone="Europe/Berlin"), ManualClock(now), model)
    async with life.runtime as runtime:
        now = await life.begin()
        forecast = await runtime.forecast()

        await life.run_until(forecast.until)

        assert forecast.until == now + 7 * DAY_MS
        assert differences(foretold(forecast), await came(runtime, now)) == []
