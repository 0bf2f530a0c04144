"""The process that the tests of MCP servers kill: an agent that calls one tool of its server.

`python mcp_process.py HOME EFFECT COMMAND...` asks the agent once, whatever was asked before.
"""

import asyncio
import sys
from pathlib import Path

from wakeful.models.model import Reply, Request
from wakeful.models.scripted import Scripted, call, says
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.tools.mcp.options import McpServerSettings, RemoteEffect
from wakeful.turn.agent import Agent


def answer(request: Request) -> str | Reply:
    return f"I saw: {request.messages[-1].text}" if request.step > 1 else says("", call("n_mark"))


async def main(home: Path, effect: str, command: list[str]) -> None:
    server = McpServerSettings(command=tuple(command), effect=RemoteEffect(effect), trusted=True)
    settings = Settings(home=home, mcp_servers={"n": server})
    agent = Agent(model=Scripted(answer), mcp=["n"])
    async with Runtime(agents=[agent], settings=settings) as runtime:
        turn = await runtime.wait(await runtime.send("go", dedup_key="once"), timeout_s=60)
        sys.stdout.write(f"{turn and turn.reply}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
