"""A page of the ledger costs what it shows, however long the history is."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from wakeful.store.database import Row, Store
from wakeful.store.opening import open_store
from wakeful.views.ledger import Filter, LedgerView
from wakeful.views.sessions import SessionView
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.stimulus import OPERATOR, State


class Explaining:
    """A store that tells how it would read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.plan: list[str] = []

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        rows = await self._store.read(f"EXPLAIN QUERY PLAN {sql}", **params)
        self.plan += [str(row[-1]) for row in rows]
        return []


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(session_key="agent:main:main"),
        Filter(session_key="agent:main:main", state=State.DONE),
        Filter(session_key="agent:main:main", origin=Origin.USER),
    ],
)
@pytest.mark.parametrize("after", [None, "st_1"])
async def test_the_stimuli_of_a_session_are_found_by_an_index(wanted: Filter, after: str | None):
    store = await open_store(None, clock=ManualClock())
    explaining = Explaining(store)
    try:
        await LedgerView(cast("Any", explaining)).page("operator", wanted, after, 50)
    finally:
        await store.close()

    assert [step for step in explaining.plan if "stimuli_of_session (session_key=?" in step]
    tables = [step for step in explaining.plan if "json_each" not in step]  # the list of kinds
    assert not [step for step in tables if "SCAN" in step or "TEMP B-TREE" in step]


@pytest.mark.parametrize("after", [None, "1.agent:main:main"])
async def test_the_list_of_sessions_reads_only_what_it_shows(after: str | None):
    store = await open_store(None, clock=ManualClock())
    explaining = Explaining(store)

    await SessionView(cast("Any", explaining)).page(OPERATOR, after, 50)
    await store.close()

    plan = " ".join(explaining.plan)
    assert "sessions_made" in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("viewer", [OPERATOR, "ann"])
async def test_what_waits_is_counted_by_indexes_that_hold_nothing_else(viewer: str):
    store = await open_store(None, clock=ManualClock())
    explaining = Explaining(store)

    with pytest.raises(ValueError, match="unpack"):  # whoever explains answers nothing
        await LedgerView(cast("Any", explaining)).waiting(viewer)
    await store.close()

    steps = [step for step in explaining.plan if "stimuli" in step]
    assert len(steps) == 3
    for index in ("stimuli_waiting", "stimuli_parked", "stimuli_held"):
        assert any(index in step for step in steps)
