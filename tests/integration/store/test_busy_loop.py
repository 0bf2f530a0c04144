"""A busy event loop does not starve the threads of the store."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.integration.store.databases import add_note, names_of, opened
from tests.patience import patience

WRITES = 30
LIMIT_S = patience(8)  # without help these writes take minutes


@pytest.mark.parametrize("round_s", [0.0002, 0.001, 0.002])
async def test_writes_and_reads_go_on_while_the_loop_is_never_idle(
    tmp_path: Path, round_s: float
) -> None:
    store = await opened(tmp_path / "home" / "wakeful.db")
    is_over = False

    async def burn() -> None:
        while not is_over:
            end = time.monotonic() + round_s
            while time.monotonic() < end:
                pass
            await asyncio.sleep(0)

    async def work() -> None:
        nonlocal is_over
        try:
            for number in range(WRITES):
                await store.transact(lambda tx, n=number: add_note(tx, str(n)))
                await names_of(store)
        finally:
            is_over = True

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(burn())
        tasks.create_task(work())

    assert len(await names_of(store)) == WRITES
    await store.close()
