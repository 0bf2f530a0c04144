"""PostgreSQL: the same group commit, with locks where SQLite has only one writer.

Isolation is READ COMMITTED. What a group decides on it reads after taking its locks, in later
statements, so that it sees what the holder before it committed.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from wakeful.store.backend import Backend, Rerun
from wakeful.store.database import READ_TIMEOUT_S, Lock, Row, Store
from wakeful.store.full_text import POSTGRES_FULL_TEXT
from wakeful.store.grouped import GroupedStore
from wakeful.store.migrations import Migration, migrate, packaged
from wakeful.store.postgres_connection import PostgresConnection, postgres_statements
from wakeful.store.postgres_errors import is_read_only, of_parameters, translated
from wakeful.store.postgres_session import PostgresSession
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Invariant

T = TypeVar("T")

YIELDING_ROWS = 100  # a commit costs its round trips here, hardly its rows
MIGRATION_LOCK = 0x77616B6566756C02  # the advisory lock of whoever migrates
_WAIT_FOR_MIGRATION = "SET LOCAL lock_timeout = '10s'"


async def open_postgres(
    url: str,
    *,
    clock: Clock,
    migrations: Sequence[Migration] | None = None,
    exclusive: bool = True,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> Store:
    """Open the database at `url`, bringing its schema up to date.

    Raise StoreRefused if another runtime has it (unless not `exclusive`) or it may not be used,
    StoreBusy if it cannot be reached.
    """
    steps = packaged() if migrations is None else migrations
    store = GroupedStore(
        lambda: PostgresBackend(PostgresSession(url, is_exclusive=exclusive), steps),
        clock=clock,
        open_reader=lambda: PostgresReader(url, read_timeout_s),
        full_text=POSTGRES_FULL_TEXT,
        yielding_rows=YIELDING_ROWS,
    )
    await store.start()
    return store


class PostgresBackend(Backend):
    """Transactions on the session that writes."""

    def __init__(self, session: PostgresSession, migrations: Sequence[Migration]) -> None:
        super().__init__()
        self._session = session
        self._void: Exception | None = None
        self._held: set[tuple[str, str]] = set()
        self._is_elsewhere = False  # this server only reads: another one may have taken over
        try:
            self._migrate(migrations)
        except BaseException:
            self._session.connection.close()
            raise

    def all(self, sql: str, /, **params: object) -> Sequence[Row]:
        connection = self._session.connection
        return self._do(lambda: connection.fetch(sql, params), sql, (params,))

    def one(self, sql: str, /, **params: object) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, /, **params: object) -> int:
        connection = self._session.connection
        tag = self._do(lambda: connection.execute(sql, params), sql, (params,))
        return _changed_rows(tag)

    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            connection = self._session.connection
            self._do(lambda: connection.execute_many(sql, rows), sql, rows)

    def begin(self) -> None:
        self._void = None
        self._is_elsewhere = False
        self._held.clear()
        try:
            self._session.connection.control("BEGIN")
        except Exception as error:
            if not self._session.connection.is_lost_by(error):
                raise translated(error, "BEGIN") from error
            self._session.replace()
            self._session.connection.control("BEGIN")

    def take(self, locks: Sequence[Lock]) -> None:
        for space, held in groupby(locks, key=lambda lock: lock.space):
            keys = [lock.key for lock in held]
            if space.ensure is not None:
                self.many(space.ensure, [{"key": key} for key in keys])
            rows = self.all(space.lock, keys=keys)
            self._held.update((space.name, row[0]) for row in rows)

    def holds(self, lock: Lock) -> bool:
        return (lock.space.name, lock.key) in self._held

    def commit(self) -> None:
        found = self.one("SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT)")
        assert found is not None
        transaction: str | None = found[0]  # None: it wrote nothing
        try:
            tag = self._session.connection.control("COMMIT")
        except Exception as error:
            if not self._session.connection.is_lost_by(error):
                raise translated(error, "COMMIT") from error
            if transaction is not None:
                self._session.find_out(transaction)
            return
        if tag != "COMMIT":
            raise Invariant(f"COMMIT became {tag}")

    def rollback(self) -> None:
        connection = self._session.connection
        if self._is_elsewhere:
            connection.drop()  # the next transaction connects to whoever writes then
            return
        try:
            connection.control("ROLLBACK")
        except Exception as error:
            is_lost = connection.is_lost_by(error)
            connection.drop()  # the server rolls back for a session that is gone
            if not is_lost:
                raise translated(error, "ROLLBACK") from error

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        raise Invariant("PostgreSQL reads on its readers")

    def tidy(self, *, is_idle: bool) -> bool:
        return False

    def close(self) -> None:
        self._session.connection.close()

    def _do(self, act: Callable[[], T], sql: str, rows: Sequence[Mapping[str, object]]) -> T:
        if self._void is not None:
            raise self._void
        connection = self._session.connection
        try:
            return act()
        except Exception as error:
            self._is_elsewhere = is_read_only(error)
            if isinstance(error, TimeoutError):
                connection.drop()
                self._void = translated(error, sql)  # another try would take as long
            elif connection.is_lost_by(error):
                self._void = Rerun()  # nothing is committed before COMMIT was sent
            else:
                statement = connection.statements[sql]
                self._void = of_parameters(error, statement, rows) or translated(error, sql)
            raise self._void from error

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        self.begin()
        try:
            self.run(_WAIT_FOR_MIGRATION)
            self.all("SELECT pg_advisory_xact_lock(:lock)", lock=MIGRATION_LOCK)
            found = self.one("SELECT to_regclass('schema') IS NOT NULL")
            assert found is not None
            has_schema: bool = found[0]
            migrate(lambda sql: self.all(sql), migrations, "postgres", has_schema=has_schema)
            self.commit()
        except BaseException:
            self.rollback()
            raise


class PostgresReader:
    """A session that only reads; it is replaced when it is lost."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._statements = postgres_statements()
        self._connection: PostgresConnection | None = None

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        is_new = self._connection is None
        try:
            connection = self._connection = self._connection or self._connected()
            return connection.fetch(sql, params)
        except Exception as error:
            is_lost = self._connection is None or self._connection.is_lost_by(error)
            if is_lost:
                self.close()
            if is_lost and not is_new and not isinstance(error, TimeoutError):
                return self.read(sql, params)
            statement = self._statements[sql]
            raise of_parameters(error, statement, (params,)) or translated(error, sql) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> PostgresConnection:
        return PostgresConnection(
            self._url,
            self._statements,
            # The server interrupts first; this is for a server that does not answer at all.
            timeout_s=self._timeout_s + 1.0,
            settings={
                "statement_timeout": f"{round(self._timeout_s * 1000)}ms",
                "default_transaction_read_only": "on",
            },
        )


def _changed_rows(tag: str) -> int:
    command, *rest = tag.split()
    return int(rest[-1]) if command in ("INSERT", "UPDATE", "DELETE", "MERGE") else 0
