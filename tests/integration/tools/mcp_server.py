"""An honest MCP server, made with the official library; a program of its own."""

import os
import sys
from typing import Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("notes")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def known(names: list[str]) -> str:
    """Say who this process is, and which of these variables it knows."""
    return f"{os.getpid()} {[name for name in names if name in os.environ]}"


@server.tool()
def picture() -> Image:
    """Show a picture."""
    return Image(data=b"\x89PNG" + bytes(96), format="png")


@server.tool()
def refuse() -> str:
    """Always fail."""
    raise ValueError("not today")


@server.tool()
async def hang(mark: str) -> str:
    """Leave a mark, then never answer."""
    await anyio.Path(f"{mark}.{os.getpid()}").touch()
    await anyio.sleep_forever()
    raise AssertionError


@server.tool()
async def grow(context: Context[Any]) -> str:
    """Get one more tool."""
    server.add_tool(add, name="more.of/it")
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
