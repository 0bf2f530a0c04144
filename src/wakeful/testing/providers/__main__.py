"""`python -m wakeful.testing.providers --ledger FILE`: serve, and say the port on a line of JSON.

It ends with its standard input, so that it never outlives whoever started it.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from wakeful.testing.ledger import Ledger
from wakeful.testing.providers.server import StandInServer


async def serve(ledger: Path) -> None:
    server = StandInServer(Ledger(ledger, is_synced=False))
    print(f'{{"port": {await server.start()}}}', flush=True)  # noqa: T201
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.run(), name="serve")
        await asyncio.to_thread(sys.stdin.read)
        serving.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m wakeful.testing.providers",
        description="Stand in for Anthropic and OpenAI on a free port of this machine. "
        "The port is said on a line of JSON; the end of standard input (Ctrl-D) ends it.",
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        required=True,
        metavar="FILE",
        help="where each question is written down, a line of JSON for each",
    )
    asyncio.run(serve(parser.parse_args().ledger))


if __name__ == "__main__":
    main()
