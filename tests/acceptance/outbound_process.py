"""The process that the tests of webhooks kill: a runtime with the settings file of its home.

`python outbound_process.py HOME [TEXT...]` gives each text to the agent, with the receivers of
`outbound` in turn as the route of its answer, and ends when nothing is left to be sent.
"""

import asyncio
import sys
from pathlib import Path

from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.settings.load import load
from wakeful.turn.agent import Agent
from wakeful.vocabulary.route import Route

_OPEN = "SELECT COUNT(*) FROM deliveries WHERE state IN ('queued', 'sent')"


async def main(home: Path, texts: list[str]) -> None:
    loaded = load(None, {"WAKEFUL_HOME": str(home)})
    doors = sorted(loaded.outbound)
    voice = Scripted(lambda request: f"answer to {request.messages[-1].text}")
    async with Runtime(agents=[Agent(model=voice)], settings=loaded.settings) as runtime:
        settled = runtime.subscribe(topics=["delivery.*"], since=await runtime.cursor())
        for number, text in enumerate(texts):
            door = doors[number % len(doors)]
            receipt = await runtime.send(text, session=door, route=Route(door=door))
            await runtime.wait(receipt)
        while (await runtime.store.read(_OPEN))[0][0]:
            await anext(settled)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
