"""Strangers: other programs that hold the database, or keep it from being written."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import apsw
import asyncpg

from wakeful.settings.places import DATABASE_NAME
from wakeful.settings.settings import Settings


@asynccontextmanager
async def stranger_holding(settings: Settings) -> AsyncGenerator[None, None]:
    """Hold what every write of a runtime needs, for as long as the block lasts."""
    if settings.home is None:
        connection = await asyncpg.connect(settings.database)
        try:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM bus_head FOR UPDATE")
                yield
        finally:
            await connection.close()
        return
    # The same library as the store's: locks of one process do not part two libraries.
    other: Any = apsw.Connection(str(settings.home / DATABASE_NAME))
    other.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # it leaves the log to whoever wrote it
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


@asynccontextmanager
async def read_only(url: str) -> AsyncGenerator[None, None]:
    """Let a server of PostgreSQL only read, as a standby in a failover, while the block lasts."""
    connection = await asyncpg.connect(url)
    name = await connection.fetchval("SELECT current_database()")
    setting = f"ALTER DATABASE {name} SET default_transaction_read_only"
    try:
        await connection.execute(f"{setting} = on")
        await _reconnected(connection)
        yield
    finally:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"{setting} = off")
        await _reconnected(connection)
        await connection.close()


async def _reconnected(connection: asyncpg.Connection) -> None:
    """End every other session: those that follow it live by the new setting."""
    await connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
