"""No service ends the runtime because of something that passes."""

import pytest

from tests.integration.engine.stages import rounds
from wakeful.operations.janitor import SWEEP_EVERY_S
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted, in_memory

TABLES = {
    "search_heads": "indexing: failed",
    "timers": "timers: failed",
    "deliveries": "sending: failed",
    "discarded_transcripts": "removing sessions: failed",
    "dedup": "old keys could not be swept",
}


async def rename(runtime: Runtime, old: str, new: str) -> None:
    """Hide a table from a service, which nobody foresees, or give it back."""
    await runtime.store.transact(lambda tx: tx.run(f"ALTER TABLE {old} RENAME TO {new}"))


@pytest.mark.parametrize("table", TABLES)
async def test_a_service_outlives_what_nobody_foresaw(table: str, caplog: pytest.LogCaptureFixture):
    def has_failed() -> bool:
        return any(TABLES[table] in record.getMessage() for record in caplog.records)

    clock = ManualClock()
    async with in_memory(Scripted(lambda _: "well"), clock=clock) as runtime:
        await runtime.wait(await runtime.send("before"))
        await rename(runtime, table, "hidden")
        if table == "search_heads":
            await runtime.wait(await runtime.send("to be indexed"))
        while not has_failed():
            clock.advance(SWEEP_EVERY_S)
            await rounds(runtime)
        await rename(runtime, "hidden", table)
        caplog.clear()
        clock.advance(SWEEP_EVERY_S)
        await rounds(runtime)
        clock.advance(SWEEP_EVERY_S)
        await rounds(runtime)
        turn = await runtime.wait(await runtime.send("after"))

    assert turn is not None
    assert not has_failed()
