"""The process that dies in the middle of a provider's answer.

`python provider_process.py HOME [TEXT]` gives the text, if there is one, to an agent with the model
of a provider, and ends when a turn has ended.
"""

import asyncio
import sys
from pathlib import Path

from wakeful.runtime import Runtime
from wakeful.testing.kit import wait_for
from wakeful.turn.agent import Agent


async def main(home: Path, texts: list[str]) -> None:
    agent = Agent(model="anthropic:claude-opus-5")
    async with Runtime(agents=[agent], home=home) as runtime:
        for text in texts:
            await runtime.send(text)
        await wait_for(runtime, "turn.finished")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
