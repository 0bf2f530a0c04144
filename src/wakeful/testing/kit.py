"""Drive a runtime in tests without sleeping: move the clock, await an event."""

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.doors.sender import Door
from wakeful.models.model import Model
from wakeful.models.scripted import Line, Pause, Scripted, call, says
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.clock import Clock, ManualClock, SystemClock, time_limit
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

__all__ = [
    "ManualClock",
    "Pause",
    "Scripted",
    "call",
    "in_memory",
    "operator_draft",
    "says",
    "wait_for",
]

PATIENCE_S = 10.0
NO_HEARTBEAT = HeartbeatRules(every=0)  # a clock that is moved by hours wakes nobody else


def in_memory(
    model: Model | Sequence[Line | Pause] = (),
    *,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
    clock: Clock | None = None,
    doors: dict[str, Door] | None = None,
) -> Runtime:
    """Return a runtime on a database in memory with one agent, `main`, and a scripted model."""
    answering = model if isinstance(model, Model) else Scripted(model)
    agent = Agent(model=answering, tools=tools, heartbeat=NO_HEARTBEAT)
    return Runtime(agents=[agent], settings=settings, clock=clock, doors=doors)


def operator_draft(session_key: str, text: str = "", **fields: Any) -> Draft:
    """Return a stimulus for `Runtime.accept` that is the operator's own."""
    return Draft(session_key=session_key, trust=Trust.OPERATOR, owner=OPERATOR, text=text, **fields)


async def wait_for(
    runtime: Runtime,
    kind: str,
    where: Callable[[Event], bool] = lambda _: True,
    *,
    since: str | None = None,
    session: str | None = None,
) -> Event:
    """Return the next event of a kind (after `since`, or after the beginning of the ledger)."""
    start = since or (await runtime.cursor()).rpartition("-")[0] + "-0"
    async with time_limit(SystemClock(), PATIENCE_S):
        async for event in runtime.subscribe(topics=[kind], session=session, since=start):
            if where(event):
                return event
    raise AssertionError("the subscription ended")
