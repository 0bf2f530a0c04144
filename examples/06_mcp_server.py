"""Tools of an MCP server: this file is also the server, started by the runtime over its pipes."""

import asyncio
import os
import signal
import sys

import wakeful
from wakeful.tools.mcp.options import McpServerSettings, RemoteEffect, RemoteTool


def serve() -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("shop")

    @server.tool()
    def price(article: str) -> str:
        """Say what an article costs."""
        return {"tea": "3 coins"}.get(article, "not for sale")

    @server.tool()
    def order(article: str) -> str:
        """Order an article, and die of it."""
        os.kill(os.getpid(), signal.SIGKILL)
        return f"{article} ordered"

    server.run("stdio")


async def main() -> None:
    shop = McpServerSettings(
        command=(sys.executable, __file__, "serve"),
        trusted=True,  # it is our own: what it says is not fenced as somebody else's words
        tools={"price": RemoteTool(effect=RemoteEffect.READ)},  # all others are `effect`
    )
    settings = wakeful.Settings(mcp_servers={"shop": shop})
    agent = wakeful.Agent(model="demo", mcp=["shop"])
    async with wakeful.Runtime(agents=[agent], settings=settings) as runtime:
        for text in ("use shop_price article=tea", "use shop_order article=tea"):
            turn = await runtime.wait(await runtime.send(text), timeout_s=60)
            assert turn is not None
            print(f"> {text}\n{turn.reply}\n")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else asyncio.run(main())
