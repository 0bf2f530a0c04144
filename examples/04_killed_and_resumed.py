"""Kill the process in the middle of a tool, start again, and see the turn go on."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import wakeful
from wakeful.models.model import Reply, Request
from wakeful.testing.kit import Scripted, call, says

HOME = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())


@wakeful.tool(effect="effect")
def pay(amount: int) -> str:
    """Pay; the process dies while it does."""
    with (HOME / "paid.txt").open("a") as ledger:
        ledger.write(f"{amount}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never reached"


def answer(request: Request) -> str | Reply:
    if "outcome unknown" in request.messages[-1].text:
        return "I was cut off while paying. It may have happened: please check before I repeat it."
    return says("", call("pay", amount=10))


async def main() -> None:
    agent = wakeful.Agent(model=Scripted(answer), tools=[pay])
    async with wakeful.Runtime(home=HOME, agents=[agent]) as runtime:
        receipt = await runtime.send("Pay 10", dedup_key="invoice 7")
        print(f"receipt: {receipt.outcome}", flush=True)
        turn = await runtime.wait(receipt)
        assert turn is not None
        print(f"reply: {turn.reply}\npaid: {(HOME / 'paid.txt').read_text().split()}")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        killed = subprocess.run([sys.executable, __file__, str(HOME)], check=False)
        print(f"the first process ended with signal {-killed.returncode}", flush=True)
    asyncio.run(main())
