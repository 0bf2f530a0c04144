"""A runtime with a scripted model, and callers who wait for turns with as little as possible."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from wakeful.models.model import Request
from wakeful.models.scripted import Line, Scripted
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.session_key import canonical

PROMPT = "How is the weather in the mountains today, and should I take a coat?"
ANSWER = "Clear until noon, then wind from the west with a little rain: take the light coat."
# What is measured has a price at its provider; whoever may not spend it waits until tomorrow.
ANY_AMOUNT = BudgetRules(money_per_day=None, turns_per_day=None, money_per_chain=None)


class Crowd:
    """Callers of one runtime; one subscription tells all of them when their turns end."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def follow(self) -> None:
        async for event in self.runtime.subscribe(topics=["turn.finished"]):
            waiting = self._waiting.pop(event.session_key or "", None)
            if waiting is not None:
                waiting.set_result(None)

    async def turn(self, session: str) -> None:
        """Send a message to an idle session and return when its turn has ended."""
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[canonical(session)] = finished
        await self.runtime.send(PROMPT, session=session)
        await finished

    async def turns(self, sessions: Sequence[str], turns_each: int) -> None:
        """Have every session run that many turns, one after the other, all sessions at once."""
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(self._turns(session, turns_each))

    async def _turns(self, session: str, count: int) -> None:
        for _ in range(count):
            await self.turn(session)


@asynccontextmanager
async def crowd(
    home: Path,
    *,
    answer: Callable[[Request], Line] = lambda _: ANSWER,
    model: str | None = None,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
) -> AsyncGenerator[Crowd]:
    """Run a runtime in that home for as long as the block lasts, with a model that has a name."""
    voice = Scripted(answer) if model is None else model
    agent = Agent(model=voice, tools=tools, budget=ANY_AMOUNT)
    async with crowd_with(agent, settings, home) as callers:
        yield callers


@asynccontextmanager
async def crowd_with(
    agent: Agent, settings: Settings | None = None, home: Path | None = None
) -> AsyncGenerator[Crowd]:
    """Run a runtime with that agent for as long as the block lasts."""
    async with Runtime(agents=[agent], home=home, settings=settings) as runtime:
        callers = Crowd(runtime)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(callers.follow())
            await asyncio.sleep(0)  # so that the subscription stands before the first turn
            yield callers
            following.cancel()


def names(prefix: str, count: int) -> list[str]:
    """Return names of sessions, in order."""
    return [f"{prefix}:{number:05d}" for number in range(count)]
