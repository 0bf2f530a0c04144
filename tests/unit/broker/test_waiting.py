"""What waits in a lane is found without a look at what is held or settled there."""

import re
from collections.abc import Iterator
from pathlib import Path

from wakeful.broker import lane_rows, stimuli
from wakeful.store.database import Tx
from wakeful.store.opening import open_store
from wakeful.vocabulary.clock import ManualClock

SESSION = "agent:main:activity"


class Explained:
    """A transaction that explains what it is asked, and answers nothing."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.looks: list[str] = []

    def all(self, sql: str, **params: object) -> Iterator[object]:
        plan = self._tx.all(f"EXPLAIN QUERY PLAN {sql}", **params)
        self.looks += [str(row[-1]) for row in plan if " stimuli " in str(row[-1])]
        return iter(())


async def test_nobody_counts_what_waits_among_all_that_ever_came(tmp_path: Path):
    store = await open_store(tmp_path / "wakeful.db", clock=ManualClock())

    def look(tx: Tx) -> list[str]:
        explained = Explained(tx)
        stimuli.count_waiting(explained, [SESSION])  # pyright: ignore[reportArgumentType]
        recompute = lane_rows._recompute  # pyright: ignore[reportPrivateUsage]
        recompute(explained, [SESSION])  # pyright: ignore[reportArgumentType]
        return explained.looks

    looks = await store.transact(look)
    await store.close()

    assert len(looks) == 3
    assert not [look for look in looks if not re.search("COVERING INDEX stimuli_waiting", look)]
