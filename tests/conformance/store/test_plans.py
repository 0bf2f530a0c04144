"""A write finds its rows by their keys, also by a plan that was made while a table was empty."""

from wakeful.broker.lane_rows import LANE_LOCKS
from wakeful.store.opening import open_store
from wakeful.vocabulary.clock import SystemClock


async def test_a_plan_for_an_empty_table_uses_its_index(migrated_url: str):
    store = await open_store(migrated_url, clock=SystemClock())
    try:
        plan = await store.transact(
            lambda tx: tx.all(f"EXPLAIN {LANE_LOCKS.lock}", keys=["agent:main:main"])
        )
    finally:
        await store.close()

    steps = " ".join(row[0] for row in plan)
    assert "lanes_pkey" in steps
    assert "Seq Scan" not in steps
