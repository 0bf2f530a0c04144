"""Shared by the engine's tests: what a model was shown, and what a session holds."""

from collections.abc import Sequence

from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.turns.turns import Turn
from wakeful.vocabulary.message import AssistantMessage, ToolMessage
from wakeful.vocabulary.stimulus import Receipt


def shown(request: Request) -> list[str]:
    """Return what a model was shown, one short line per message."""
    lines: list[str] = []
    for message in request.messages:
        match message:
            case AssistantMessage():
                calls = "".join(f" +{call.name}" for call in message.tool_calls)
                lines.append(f"assistant: {message.text}{calls}")
            case ToolMessage():
                lines.append(f"tool: {message.text}")
            case _:
                lines.append(f"user: {message.text}")
    return lines


async def states(runtime: Runtime, column: str = "state") -> Sequence[str]:
    """Return the states of all stimuli, in order of acceptance."""
    rows = await runtime.store.read(f"SELECT {column} FROM stimuli ORDER BY id")
    return [row[0] for row in rows]


async def kinds(runtime: Runtime) -> list[str]:
    """Return the kinds of all stored events, in order."""
    rows = await runtime.store.read("SELECT kind FROM events ORDER BY seq")
    return [row[0] for row in rows]


async def turn_of(runtime: Runtime, receipt: Receipt) -> Turn:
    """Return the turn that settled a stimulus; there must have been one."""
    turn = await runtime.wait(receipt)
    assert turn is not None, await runtime.lane(receipt.session_key)
    return turn
