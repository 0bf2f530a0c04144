"""A process that writes with many callers and prints each name once it is acknowledged."""

import asyncio
import itertools
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.integration.store.databases import add_note, opened

CALLERS = 30


async def main(path: Path, tag: str) -> None:
    store = await opened(path)
    numbers = itertools.count()

    async def call() -> None:
        for number in numbers:
            name = f"{tag}-{number:06}"
            await store.transact(lambda tx, name=name: add_note(tx, name, "x" * 300))
            os.write(1, f"{name}\n".encode())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CALLERS):
            tasks.create_task(call())


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
