"""Shared by the tests of MCP servers: a server that is kept, and calls of its tools."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.patience import patience
from tests.waiting import eventually
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.tools.mcp.server import McpServer
from wakeful.tools.running import run
from wakeful.tools.tool import ToolContext, ToolResult
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.message import ToolCall

HERE = Path(__file__).parent
HONEST = (sys.executable, str(HERE / "mcp_server.py"))
PATIENCE_S = patience(40)


def lying(*tools: str, **plan: Any) -> tuple[str, ...]:
    """Return the command of a server that lies; a tool's name is what it does."""
    listed = [{"name": tool, "inputSchema": {"type": "object"}} for tool in tools]
    told = json.dumps({"tools": listed, **plan})
    return (sys.executable, "-S", str(HERE / "lying_mcp_server.py"), told)


@asynccontextmanager
async def serving(
    *command: str, folder: Path = HERE, **settings: Any
) -> AsyncGenerator[McpServer, None]:
    """Keep a connection to a server while the block runs."""
    wanted = McpServerSettings(command=command, **settings)
    server = McpServer("notes", wanted, folder=folder, clock=SystemClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        try:
            await eventually(lambda: server.status().state != "connecting")
            yield server
        finally:
            task.cancel()


async def call(server: McpServer, name: str, /, **arguments: Any) -> ToolResult:
    """Call a tool as a turn does."""
    tool = server.find(f"notes_{name}")
    assert tool is not None, server.status()
    context = ToolContext(
        key="tn_1:1:c",
        session_key="agent:main:main",
        agent_id="main",
        turn_id="tn_1",
        workspace=None,
        clock=SystemClock(),
    )
    return await run(tool, ToolCall(id="c", name=tool.name, arguments=arguments), context)


def is_up(server: McpServer) -> bool:
    return server.status().state == "up"
