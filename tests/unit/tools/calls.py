"""Calls of tools, made as a turn makes them."""

from pathlib import Path
from typing import Any

from wakeful.tools.running import run
from wakeful.tools.tool import Tool, ToolContext, ToolResult
from wakeful.vocabulary.clock import Clock, ManualClock
from wakeful.vocabulary.message import ToolCall
from wakeful.vocabulary.stimulus import Trust


def make_context(
    workspace: Path | None = None,
    clock: Clock | None = None,
    *,
    trust: Trust = Trust.OPERATOR,
    shared_files: tuple[str, ...] = (),
) -> ToolContext:
    return ToolContext(
        key="tn_1:1:call_1",
        session_key="agent:main:main",
        agent_id="main",
        turn_id="tn_1",
        workspace=workspace,
        clock=clock or ManualClock(),
        trust=trust,
        shared_files=shared_files,
    )


async def call(tool: Tool, context: ToolContext, /, **arguments: Any) -> ToolResult:
    return await run(tool, ToolCall(id="call_1", name=tool.name, arguments=arguments), context)


async def failure(tool: Tool, context: ToolContext, /, **arguments: Any) -> str:
    """Call a tool that must answer with an error, and return what it says."""
    result = await call(tool, context, **arguments)
    assert result.is_error, result.text
    return result.text
