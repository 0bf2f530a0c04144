"""A page of the inbox costs what it shows, however much was read before."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from wakeful.store.database import Row, Store
from wakeful.store.opening import open_store
from wakeful.views.inbox import InboxFilter, InboxView
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.stimulus import State


class ExplainedReads:
    """A store that tells how it would read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.plan = ""

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        rows = await self._store.read(f"EXPLAIN QUERY PLAN {sql}", **params)
        self.plan += " ".join(str(row[-1]) for row in rows)
        return []


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (InboxFilter(), "inbox_items"),
        (InboxFilter(source="s"), "inbox_items"),
        (InboxFilter(state=State.MERGED, agent_id="main"), "inbox_items"),
        (InboxFilter(state=State.HELD), "stimuli_held"),
        (InboxFilter(state=State.HELD, source="s"), "stimuli_held"),
        (InboxFilter(state=State.PARKED), "stimuli_parked"),
    ],
)
async def test_items_are_found_by_an_index_of_the_inbox(wanted: InboxFilter, index: str):
    store = await open_store(None, clock=ManualClock())
    explained = ExplainedReads(store)
    try:
        await InboxView(cast("Any", explained)).page(wanted, None, 50)
    finally:
        await store.close()

    assert index in explained.plan
    assert "SCAN stimuli " not in explained.plan.replace(f"SCAN stimuli USING INDEX {index}", "")
