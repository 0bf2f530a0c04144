"""A look ahead of a week: fifty agents that beat and have ten jobs each; and that tick, too."""

import asyncio
import time
from pathlib import Path

from bench.figures import Figure, Sense
from wakeful.automations.wishes import Maker, Wish
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import Scripted, says
from wakeful.models.tariffs import Tariff
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.turn.agent import Agent
from wakeful.vocabulary.automation import CronSchedule
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.stimulus import OPERATOR, Trust

AGENTS = 50
JOBS = 10  # of each agent, one a day each
DAYS = 7
NOON = 1_800_014_400_000
CALM_S = 3
TICKING_S = 15
PAID = Tariff(price=Price(input=Rate(base=1.0), output=Rate(base=4.0)), max_output=8_192)
ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name="bench", is_person=True)


def measure(_folder: Path) -> list[Figure]:
    calm, _ = asyncio.run(_forecast(ticks=False))
    ticking, fires = asyncio.run(_forecast(ticks=True))
    return [
        Figure(
            name=f"forecast of {AGENTS} agents with heartbeats and {JOBS} jobs each, {DAYS} days",
            value=calm,
            unit="s",
            floor=None,
            floor_is="",
            sense=Sense.AT_MOST,
            goal=CALM_S,
        ),
        Figure(
            name="the same with ticks of 600 s",
            value=ticking,
            unit="s",
            floor=None,
            floor_is=f"{fires} fires",
            sense=Sense.AT_MOST,
            goal=TICKING_S,
        ),
    ]


def load(_folder: Path) -> None:
    asyncio.run(_forecast(ticks=True))


async def _forecast(*, ticks: bool) -> tuple[float, int]:
    """Return how long a forecast took, and how much fires in it."""
    rules = ProactiveRules(enabled=ticks, initial_greeting=False)
    model = Scripted(lambda _: says("NO_REPLY"), tariff=PAID)
    agents = [Agent(f"agent{number}", model=model, proactive=rules) for number in range(AGENTS)]
    async with Runtime(
        agents=agents, settings=Settings(timezone="UTC"), clock=ManualClock(NOON)
    ) as runtime:
        for agent in agents:
            for number in range(JOBS):
                wish = Wish(
                    name=f"job {number}",
                    message="Look at the mail and say what is new.",
                    schedule=CronSchedule(expr=f"{number * 5} {number} * * *"),
                    session_key=f"agent:{agent.id}:main",
                )
                await runtime.services.automations.add(wish, ME)
        started = time.perf_counter()
        forecast = await runtime.forecast(DAYS)
        took_s = time.perf_counter() - started
    return took_s, sum(row.fires for row in forecast.rows)
