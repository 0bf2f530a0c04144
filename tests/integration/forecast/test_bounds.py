"""A forecast keeps a processor busy: so it is made one at a time, for so long and no longer."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.forecast.life import PATIENT, AssumedModel, Life
from tests.waiting import eventually
from wakeful.assembly import forecasting
from wakeful.assembly.forecasting import MOST_AT_ONCE
from wakeful.forecast.forecast import ForecastLoop
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import TooOften
from wakeful.vocabulary.forecast import DAY_MS, Forecast
from wakeful.vocabulary.proactive import ProactiveRules


def a_life() -> Life:
    model = AssumedModel()
    rules = ProactiveRules(enabled=True, tick_interval_secs=600)
    agent = Agent(model=model, limits=PATIENT, proactive=rules)
    return Life([agent], Settings(), ManualClock(), model)


async def test_a_forecast_that_takes_too_long_ends_before_its_time_and_says_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = a_life()
    async with life.runtime as runtime:
        await life.begin()
        monkeypatch.setattr(forecasting, "LONGEST_S", -1.0)

        cut = await runtime.forecast(31)

    assert 0 < cut.until - cut.since < DAY_MS
    assert all(line.at <= cut.until for line in cut.timeline if line.until is None)


async def test_of_many_who_ask_at_once_a_few_wait_and_the_others_are_refused() -> None:
    """T10: whoever may look ahead does not keep the machine busy for an hour by that."""
    life = a_life()
    async with life.runtime as runtime:
        await life.begin()

        asked = [runtime.forecast(1) for _ in range(50)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        again = await runtime.forecast(1)

    made = [one for one in found if isinstance(one, Forecast)]
    assert len(made) == MOST_AT_ONCE
    assert {type(one) for one in found if one not in made} == {TooOften}
    assert again.rows == made[0].rows


async def test_no_forecast_goes_on_for_somebody_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()
    run: Any = ForecastLoop.run

    def noted(loop: ForecastLoop, until: int, is_enough: Callable[[], bool]) -> int:
        begun.set()
        try:
            return run(loop, until, is_enough)
        finally:
            ended.set()

    monkeypatch.setattr(ForecastLoop, "run", noted)
    life = a_life()
    async with life.runtime as runtime, asyncio.TaskGroup() as tasks:
        await life.begin()
        asking = tasks.create_task(runtime.forecast(31))
        await eventually(begun.is_set)
        asking.cancel()
        await asyncio.wait([asking])

        assert ended.is_set()
