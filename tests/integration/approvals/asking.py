"""Shared by the tests of approvals: an agent whose tool must be approved, and looks at the rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wakeful.assembly.hooks import NO_HOOKS, Hooks
from wakeful.models.model import Model
from wakeful.models.scripted import Line, Pause
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, Scripted
from wakeful.tools.tool import Tool, tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn
from wakeful.vocabulary.approving import Permission, ToolPermission
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.stimulus import Outcome, Receipt

MAIN = "agent:main:main"
ASK: Mapping[str, str] = {"act": "ask"}

acts: list[str] = []


@tool
def act(what: str = "") -> str:
    """Act."""
    acts.append(what)
    return f"did {what}"


@tool(effect="read", is_for_external=True)
def look(where: str = "") -> str:
    """Look."""
    acts.append(f"look {where}")
    return f"saw {where}"


def asking(
    model: Model | Sequence[Line | Pause],
    rules: Mapping[str, Permission | ToolPermission | str] = ASK,
    *,
    tools: Sequence[Tool] = (act, look),
    clock: Clock | None = None,
    home: Path | None = None,
    hooks: Hooks = NO_HOOKS,
) -> Runtime:
    """Return a runtime whose agent must ask before it acts."""
    acts.clear()
    answering = model if isinstance(model, Model) else Scripted(model)
    agent = Agent(model=answering, tools=tools, heartbeat=NO_HEARTBEAT, approvals=rules)
    runtime = Runtime(agents=[agent], settings=Settings(home=home), clock=clock)
    runtime._plan = replace(runtime._plan, hooks=hooks)  # pyright: ignore[reportPrivateUsage]
    return runtime


async def ended(runtime: Runtime, receipt: Receipt) -> Turn:
    turn = await runtime.wait(receipt)
    assert turn is not None
    return turn


async def after(runtime: Runtime, number: int) -> Turn:
    """Return the turn that an answer has led to, once it is over."""
    rows = await runtime.store.read(
        "SELECT stimulus_id, session_key FROM approvals WHERE number = :n", n=number
    )
    receipt = Receipt(stimulus_id=rows[0][0], session_key=rows[0][1], outcome=Outcome.QUEUED)
    return await ended(runtime, receipt)


async def rows(runtime: Runtime) -> list[tuple[int, str]]:
    """Return number and state of everything that was asked."""
    found = await runtime.store.read("SELECT number, state FROM approvals ORDER BY number")
    return [(row[0], row[1]) for row in found]


async def notes(runtime: Runtime, session: str = "main") -> list[str]:
    """Return the lines of the runtime itself that the model reads."""
    return [
        getattr(entry.content(), "text", "")
        for entry in await runtime.entries(session)
        if entry.kind.value == "custom_message"
    ]


async def kinds(runtime: Runtime) -> list[str]:
    """Return the events of approvals, in their order."""
    found = await runtime.store.read(
        "SELECT kind FROM events WHERE kind LIKE 'approval.%' ORDER BY seq"
    )
    return [row[0] for row in found]
