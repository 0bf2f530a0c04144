"""The writer's session: claimed for one runtime, replaced when lost, asked what became of it."""

import time
from dataclasses import dataclass

from wakeful.store.backend import Rerun
from wakeful.store.postgres_connection import PostgresConnection, postgres_statements
from wakeful.store.postgres_errors import translated
from wakeful.vocabulary.errors import StoreBusy, StoreFailed, StoreRefused

STATEMENT_TIMEOUT_S = 30.0  # a statement of the writer
LOCK_TIMEOUT_S = 5.0  # how long a stranger may hold a row; then callers are told to come back
RECONNECT_S = 5.0  # how long callers wait for a server that went away
UNKNOWN_LIMIT_S = 60.0  # how long the outcome of a commit may stay unknown
PAUSE_S = 0.05  # between tries

RUNTIME_LOCK = 0x77616B6566756C01  # the advisory lock of the runtime that has the database

_SETTINGS = {
    "default_transaction_isolation": "read committed",
    # Every write finds its rows by a key. A plan is kept for the life of the session: one that was
    # made while a table was empty would read all of it, 35 ms each time with 10 000 rows.
    "enable_seqscan": "off",
    # The server gives up on a session whose other end died without a word.
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_WHO = """
    SELECT pid, CAST(backend_start AS TEXT), current_setting('synchronous_commit')
    FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
_END_PREDECESSOR = """
    SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
    WHERE pid = :pid AND CAST(backend_start AS TEXT) = :started
"""
_HOLDERS = """
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (CAST(l.classid AS BIGINT) << 32) + CAST(l.objid AS BIGINT) = :lock
"""


@dataclass(frozen=True)
class _Backend:
    """Which process of the server serves a session; numbers are reused, so also since when."""

    pid: int
    started: str


class PostgresSession:
    """The connection that writes now; `connection` changes when a lost one is replaced."""

    def __init__(self, url: str, *, is_exclusive: bool) -> None:
        self._url = url
        self._is_exclusive = is_exclusive
        self._statements = postgres_statements()
        self._backend: _Backend | None = None
        self.connection = self._claimed(self._connected())

    def replace(self) -> None:
        """Connect again; raise StoreBusy if the server does not come back in time."""
        self.connection.drop()
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.connection = self._claimed(self._connected())
                return
            except (StoreBusy, StoreRefused):
                if time.monotonic() >= deadline:
                    raise
            time.sleep(PAUSE_S)

    def find_out(self, transaction: str) -> None:
        """Return if a transaction committed whose COMMIT was not answered; raise if it did not.

        Nothing is claimed before the answer is known: the old session may be committing still.
        """
        self.connection.drop()
        deadline = time.monotonic() + UNKNOWN_LIMIT_S
        while time.monotonic() < deadline:
            try:
                status = self._status(transaction)
            except StoreBusy:
                status = None
            if status == "committed":
                return
            if status == "aborted":
                raise Rerun
            time.sleep(PAUSE_S)
        raise StoreFailed("the outcome of a commit could not be found out")

    def _status(self, transaction: str) -> str | None:
        connection = self._connected()
        try:
            sql = "SELECT pg_xact_status(CAST(CAST(:id AS TEXT) AS xid8))"
            return connection.fetch(sql, {"id": transaction})[0][0]
        except Exception as error:
            raise translated(error, "pg_xact_status") from error
        finally:
            connection.close()

    def _connected(self) -> PostgresConnection:
        try:
            return PostgresConnection(
                self._url,
                self._statements,
                timeout_s=STATEMENT_TIMEOUT_S,
                settings=_SETTINGS | {"lock_timeout": f"{round(LOCK_TIMEOUT_S * 1000)}ms"},
            )
        except Exception as error:
            raise translated(error, "connect") from error

    def _claimed(self, connection: PostgresConnection) -> PostgresConnection:
        try:
            if self._backend is not None:
                # Our old session may live on at the server, with its locks.
                old = {"pid": self._backend.pid, "started": self._backend.started}
                connection.fetch(_END_PREDECESSOR, old)
            pid, started, synchronous = connection.fetch(_WHO, {})[0]
            if synchronous == "off":
                connection.control("SET synchronous_commit = on")
            if self._is_exclusive:
                _claim(connection)
        except Exception as error:
            connection.drop()
            raise translated(error, "claim") from error
        self._backend = _Backend(pid, started)
        return connection


def _claim(connection: PostgresConnection) -> None:
    lock = {"lock": RUNTIME_LOCK}
    if not connection.fetch("SELECT pg_try_advisory_lock(:lock)", lock)[0][0]:
        names = ", ".join(row[0] for row in connection.fetch(_HOLDERS, lock))
        raise StoreRefused(f"the database is in use by {names or 'another runtime'}; stop it first")
