"""What a lane waits for is found among what waits, never by a look through its whole history."""

from collections.abc import Sequence
from typing import Any

import pytest

from wakeful.store.database import Row
from wakeful.store.sqlite import SqliteBackend
from wakeful.testing.kit import Scripted, call, in_memory, says

HISTORY = "stimuli_of_session"  # the index of all that ever came to a session


async def test_no_statement_of_the_engine_reads_the_history_of_a_session(
    monkeypatch: pytest.MonkeyPatch,
):
    seen: dict[str, dict[str, object]] = {}
    plain = SqliteBackend.all

    def noting(self: SqliteBackend, sql: str, /, **params: Any) -> Sequence[Row]:
        if "stimuli" in sql and "session_key" in sql and sql.startswith(("SELECT", "UPDATE")):
            seen[sql] = params
        return plain(self, sql, **params)

    monkeypatch.setattr(SqliteBackend, "all", noting)
    async with in_memory(Scripted([says("", call("check_inbox")), "1", "2", "3"])) as runtime:
        await runtime.post("x", source="s")
        await runtime.wait(await runtime.send("hello"))
        await runtime.post("x", source="s")
        await runtime.wait(await runtime.send("hello", session="system:activity"))
        await runtime.wait(await runtime.post("x", source="s", priority="now"))
        await runtime.halt()
        await runtime.send("later")
        await runtime.stop()
        await runtime.resume()
        plans = await runtime.store.transact(
            lambda tx: {
                sql: " ".join(str(row[-1]) for row in tx.all(f"EXPLAIN QUERY PLAN {sql}", **params))
                for sql, params in list(seen.items())
            }
        )

    assert any("stimuli_held" in plan for plan in plans.values())
    assert any("stimuli_waiting" in plan for plan in plans.values())
    assert {sql for sql, plan in plans.items() if HISTORY in plan} == set()
