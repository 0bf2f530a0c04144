"""A PostgreSQL connection for synchronous code: each call runs a private event loop."""

import asyncio
import os
import socket
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import asyncpg

from wakeful.store.database import Row
from wakeful.store.postgres_errors import is_end_of_session
from wakeful.store.statements import Statements, for_postgres

T = TypeVar("T")

CONNECT_TIMEOUT_S = 5.0
STATEMENT_CACHE = 1000


class PostgresConnection:
    """One session, used on one thread; raises what the driver raises."""

    def __init__(
        self, url: str, statements: Statements, *, timeout_s: float, settings: Mapping[str, str]
    ) -> None:
        self.statements = statements
        self._timeout_s = timeout_s
        self._loop = asyncio.new_event_loop()
        name = f"wakeful {os.getpid()}@{socket.gethostname()}"[:63]
        try:
            self._session: asyncpg.Connection = self._await(
                asyncpg.connect(
                    url,
                    timeout=CONNECT_TIMEOUT_S,
                    command_timeout=timeout_s,
                    statement_cache_size=STATEMENT_CACHE,
                    max_cached_statement_lifetime=0,
                    server_settings={"application_name": name, "jit": "off", **settings},
                )
            )
        except BaseException:
            self._loop.close()
            raise

    def fetch(self, sql: str, params: Mapping[str, object]) -> list[Row]:
        statement = self.statements[sql]
        args = [params[name] for name in statement.names]
        rows = self._await(self._session.fetch(statement.sql, *args))
        return [tuple(row) for row in rows]

    def execute(self, sql: str, params: Mapping[str, object]) -> str:
        """Execute one statement and return its command tag, such as `UPDATE 3`."""
        statement = self.statements[sql]
        args = [params[name] for name in statement.names]
        return self._await(self._session.execute(statement.sql, *args))

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        statement = self.statements[sql]
        names = statement.names
        args = [[row[name] for name in names] for row in rows]
        self._await(self._session.executemany(statement.sql, args))

    def control(self, sql: str) -> str:
        """Execute a statement without parameters and return its command tag."""
        return self._await(self._session.execute(sql))

    def close(self) -> None:
        """Say goodbye; if nobody answers, just leave."""
        try:
            self._await(self._session.close(timeout=1.0))
        except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresError):
            self._session.terminate()
        self.drop()

    def drop(self) -> None:
        """Cut the connection without a word."""
        if not self._loop.is_closed():
            self._session.terminate()
            self._await(asyncio.sleep(0))  # the transport closes its socket in the next round
            self._loop.close()

    def is_lost_by(self, error: BaseException) -> bool:
        """Return whether this error means that nothing can be said over the connection any more."""
        if isinstance(error, OSError | TimeoutError) or self._session.is_closed():
            return True
        return isinstance(error, asyncpg.PostgresError) and is_end_of_session(error)

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise ConnectionResetError("the connection was dropped")
        return self._loop.run_until_complete(work)


def postgres_statements() -> Statements:
    return Statements(for_postgres)
