"""What a look ahead costs: statements that do not grow with agents, and seconds."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from wakeful.models.scripted import Scripted, says
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Row
from wakeful.store.sqlite import SqliteBackend
from wakeful.turn.agent import Agent
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.proactive import ProactiveRules

NOON = 1_800_014_400_000
AT_MOST_S = 5.0  # of the processor; it takes a tenth where nobody else works


def agents(count: int, *, ticks: bool = False) -> list[Agent]:
    rules = ProactiveRules(enabled=ticks, initial_greeting=False)
    model = Scripted(lambda _: says("NO_REPLY"))
    return [Agent(f"agent{number}", model=model, proactive=rules) for number in range(count)]


async def test_hearts_that_beat_together_take_the_statements_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = Counter[int]()
    days = 0
    plain = SqliteBackend.all

    def counting(self: SqliteBackend, sql: str, /, **params: Any) -> Sequence[Row]:
        count[days] += 1
        return plain(self, sql, **params)

    monkeypatch.setattr(SqliteBackend, "all", counting)

    async def of_a_day(agent_count: int) -> int:
        nonlocal days
        count.clear()
        settings, clock = Settings(timezone="UTC"), ManualClock(NOON)
        async with Runtime(agents=agents(agent_count), settings=settings, clock=clock) as runtime:
            for days in (1, 2):
                forecast = await runtime.forecast(days)
                assert sum(row.fires for row in forecast.rows) >= days * 47 * agent_count
        return count[2] - count[1]

    few, many = await of_a_day(2), await of_a_day(20)

    assert 0 < many < 2 * few


async def test_a_day_of_four_agents_that_tick_takes_seconds() -> None:
    settings, clock = Settings(timezone="UTC"), ManualClock(NOON)
    async with Runtime(agents=agents(4, ticks=True), settings=settings, clock=clock) as runtime:
        began = time.process_time()
        forecast = await runtime.forecast(1)
        took_s = time.process_time() - began

    assert sum(row.turns for row in forecast.rows) > 400
    assert took_s < AT_MOST_S
