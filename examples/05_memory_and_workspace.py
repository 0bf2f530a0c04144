"""An agent with a folder of its own: files, memory, and what they do to its prompt."""

import asyncio
import tempfile
from pathlib import Path

import wakeful


async def ask(runtime: wakeful.Runtime, text: str) -> None:
    turn = await runtime.wait(await runtime.send(text))
    assert turn is not None
    print(f"> {text}\n{turn.reply}\n")


async def main() -> None:
    home = Path(tempfile.mkdtemp())
    workspace = home / "workspace"
    workspace.mkdir()
    # Read into the system prompt, as are SOUL.md, USER.md, MEMORY.md and HEARTBEAT.md.
    (workspace / "AGENTS.md").write_text("You keep house. Be brief.\n")
    agent = wakeful.Agent(model="demo", workspace=workspace)

    async with wakeful.Runtime(home=home, agents=[agent]) as runtime:
        await ask(runtime, "remember that the plumber comes on Friday")
        await ask(runtime, "write shopping.md: milk and candles")

    # Another runtime, as after a restart: what was written down is still there.
    async with wakeful.Runtime(home=home, agents=[agent]) as runtime:
        await ask(runtime, "what do you remember?")
        await ask(runtime, "what have you done?")

    names = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*.md"))
    print("in the workspace:", ", ".join(names))


if __name__ == "__main__":
    asyncio.run(main())
