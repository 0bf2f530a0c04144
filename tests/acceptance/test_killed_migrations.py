"""A process killed at any statement of a migration leaves the old schema or the new one."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from wakeful.store.migrations import Migration, packaged
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import SystemClock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and kills itself")

LATER = Migration(
    number=packaged()[-1].number + 1,
    name="later",
    sql="CREATE TABLE extra (id TEXT PRIMARY KEY);\n"
    "INSERT INTO extra (id) VALUES ('a');\n"
    "ALTER TABLE extra ADD COLUMN more TEXT;\n",
)


async def opened(path: Path, migrations: Sequence[Migration]) -> tuple[int, list[str]]:
    """Open and close a store; return its schema version and the tables it has."""
    store = await open_sqlite(path, clock=SystemClock(), migrations=migrations)
    ((version,),) = await store.read("SELECT version FROM schema")
    rows = await store.read("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    await store.close()
    return version, [row[0] for row in rows]


def killed_at(statement: int, path: Path, migrations: Sequence[Migration]) -> bool:
    """Open a store in a child that dies before its n-th statement; False if it came to its end."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(*_: object) -> bool:
            nonlocal seen
            seen += 1
            if seen == statement:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        def watch(connection: Any) -> None:  # the stub's type for the trace is incomplete
            connection.set_exec_trace(count)

        apsw.connection_hooks.append(watch)
        asyncio.run(opened(path, migrations))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def kills(path: Path, migrations: Sequence[Migration]) -> int:
    """Kill a start at each of its statements; return how many there were."""
    statement = 1
    while killed_at(statement, path, migrations):
        statement += 1
    return statement - 1


@pytest.mark.timeout(120)
def test_the_first_start_may_be_killed_at_any_statement(tmp_path: Path):
    path = tmp_path / "home" / "wakeful.db"

    count = kills(path, packaged())

    version, tables = asyncio.run(opened(path, packaged()))
    assert count > 40
    assert version == packaged()[-1].number
    assert {"stimuli", "lanes", "turns", "entries", "events", "tokens"} <= set(tables)


@pytest.mark.timeout(120)
def test_an_upgrade_may_be_killed_at_any_statement(tmp_path: Path):
    """F33: the old schema or the new one."""
    path = tmp_path / "home" / "wakeful.db"
    asyncio.run(opened(path, packaged()))

    count = kills(path, [*packaged(), LATER])

    version, tables = asyncio.run(opened(path, [*packaged(), LATER]))
    assert count > 4
    assert version == LATER.number
    assert "extra" in tables
