"""The process that the tests of files kill: it is given a file, and sends another one on.

`python files_process.py HOME` says one message with an attachment, as often as it lives, under one
key; its agent answers with a file of its workspace. What the door gets is written to `got.jsonl`.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.pictures import attachment, png
from wakeful.models.model import Request
from wakeful.models.scripted import Line, Scripted, call, says
from wakeful.models.sight import Sight
from wakeful.outbox.outbox import ReadyDelivery
from wakeful.runtime import Runtime
from wakeful.settings.load import load
from wakeful.turn.agent import Agent
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.route import Route

_OPEN = "SELECT COUNT(*) FROM deliveries WHERE state IN ('queued', 'sent')"


def answer(request: Request) -> Line:
    if isinstance(request.messages[-1], ToolMessage):
        return "done"
    assert len(request.contents) == 1
    return says("", call("send_message", text="here", files=["report.txt"]))


async def main(home: Path) -> None:
    async def take(delivery: ReadyDelivery) -> None:
        files = [one.content().decode() for one in delivery.files]
        with (home / "got.jsonl").open("a") as ledger:
            ledger.write(json.dumps([delivery.id, delivery.text, files]) + "\n")
            ledger.flush()
            os.fsync(ledger.fileno())

    loaded = load(None, {"WAKEFUL_HOME": str(home)})
    (home / "w").mkdir(exist_ok=True)
    (home / "w/report.txt").write_text("all is well")
    agent = Agent(model=Scripted(answer, sight=Sight(images=True)), workspace=home / "w")
    async with Runtime(agents=[agent], settings=loaded.settings, doors={"out": take}) as runtime:
        settled = runtime.subscribe(topics=["*"], since=await runtime.cursor())
        await runtime.send(
            "look", dedup_key="once", route=Route(door="out"), attachments=[attachment(png())]
        )
        while not await is_at_rest(runtime):
            await anext(settled)


async def is_at_rest(runtime: Runtime) -> bool:
    waits = await runtime.store.read("SELECT COUNT(*) FROM stimuli WHERE settled_at IS NULL")
    return not waits[0][0] and not (await runtime.store.read(_OPEN))[0][0]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
