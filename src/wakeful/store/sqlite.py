"""SQLite: a file, or memory, with one writer and readers that never wait for it."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import apsw
import msgspec

from wakeful.store.backend import Backend
from wakeful.store.database import READ_TIMEOUT_S, Lock, Row, Store
from wakeful.store.grouped import GroupedStore
from wakeful.store.migrations import Migration, migrate, packaged
from wakeful.store.sqlite_errors import translated
from wakeful.store.sqlite_home import Home
from wakeful.store.statements import Statements, for_sqlite, unstorable
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput

BUSY_TIMEOUT_S = 5.0  # how long a foreign process may hold the database
CHECKPOINT_BYTES = 16 * 1024 * 1024  # the write-ahead log is copied back above this size
PAGE_BYTES = 4096
PROGRESS_STEPS = 10_000  # steps of SQLite's machine between looks at the clock, under 1 ms

_json = msgspec.json.Encoder()


async def open_sqlite(
    path: Path | None,
    *,
    clock: Clock,
    migrations: Sequence[Migration] | None = None,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> Store:
    """Open the database at `path`, creating it if there never was one; None is in memory.

    Raise StoreRefused if another process has it or it may not be used, StoreDamaged if it cannot
    be trusted; in both cases nothing was changed.
    """
    steps = packaged() if migrations is None else migrations

    def open_backend() -> Backend:
        home = None if path is None else Home(path)
        return SqliteBackend(home, steps, busy_timeout_s, read_timeout_s)

    def open_reader() -> SqliteReader:
        assert path is not None
        return SqliteReader(path, read_timeout_s)

    store = GroupedStore(
        open_backend, clock=clock, open_reader=None if path is None else open_reader
    )
    await store.start()
    return store


class SqliteBackend(Backend):
    """The one connection that writes and checkpoints."""

    def __init__(
        self,
        home: Home | None,
        migrations: Sequence[Migration],
        busy_timeout_s: float,
        read_timeout_s: float,
    ) -> None:
        super().__init__()
        self._home = home
        self._statements = Statements(for_sqlite)
        self._busy_timeout_ms = round(busy_timeout_s * 1000)
        self._read_timeout_s = read_timeout_s
        self._wal_pages = 0
        self._connection = _connect(home)
        self._connection.set_busy_timeout(self._busy_timeout_ms)
        self._connection.set_wal_hook(self._committed)  # this also ends automatic checkpoints
        self._live_cursor: Any = self._connection.cursor()
        self._cursor: Any = self._live_cursor
        self._migrate(migrations)

    def all(self, sql: str, /, **params: object) -> Sequence[Row]:
        statement = self._statements[sql]
        try:
            if statement.lists:
                params = _with_lists(params, statement.lists)
            return self._cursor.execute(statement.sql, params).fetchall()
        except Exception as error:
            self._void(error, sql, params)

    def one(self, sql: str, /, **params: object) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, /, **params: object) -> int:
        statement = self._statements[sql]
        try:
            if statement.lists:
                params = _with_lists(params, statement.lists)
            # Rows that come back are fetched: a statement counts when it is finished.
            self._cursor.execute(statement.sql, params).fetchall()
            return self._connection.changes()
        except Exception as error:
            self._void(error, sql, params)

    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        statement = self._statements[sql]
        try:
            if statement.lists:
                rows = [_with_lists(params, statement.lists) for params in rows]
            self._cursor.executemany(statement.sql, rows).fetchall()
        except Exception as error:
            self._void(error, sql, *rows)

    def begin(self) -> None:
        self._control("BEGIN IMMEDIATE")

    def take(self, locks: Sequence[Lock]) -> None:
        for lock in locks:
            if lock.space.ensure is not None:
                self.run(lock.space.ensure, key=lock.key)

    def commit(self) -> None:
        if isinstance(self._cursor, _Void):
            raise self._cursor.error
        self._control("COMMIT")

    def rollback(self) -> None:
        self._cursor = self._live_cursor
        if self._connection.in_transaction:
            self._control("ROLLBACK")

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        return _read(self._connection, self._statements, sql, params, self._read_timeout_s)

    def tidy(self, *, is_idle: bool) -> bool:
        if self._wal_pages == 0:
            return False
        if is_idle:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return False
        if self._wal_pages * PAGE_BYTES > CHECKPOINT_BYTES:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        return True

    def close(self) -> None:
        try:
            if self._wal_pages:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._connection.close()
            if self._home is not None:
                self._home.leave()

    def _control(self, sql: str) -> None:
        try:
            self._live_cursor.execute(sql)
        except apsw.Error as error:
            raise translated(error, self._connection, sql) from error

    def _void(self, error: Exception, sql: str, *params: Mapping[str, object]) -> NoReturn:
        ours = _our_error(error, self._connection, sql, params)
        # SQLite may have rolled back by itself: what follows would commit statement by statement.
        self._cursor = _Void(ours)
        raise ours from error

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        self._control("BEGIN IMMEDIATE")
        try:
            has_schema = self._connection.table_exists("main", "schema")
            migrate(lambda sql: self.all(sql), migrations, dialect="sqlite", has_schema=has_schema)
            self.commit()
        except BaseException:
            self.rollback()
            self._connection.close()
            raise

    def _committed(self, _connection: object, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> None:
        # It must not wait for readers: callers of the next group would wait with it.
        self._connection.set_busy_timeout(0)
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=mode)
            if mode == apsw.SQLITE_CHECKPOINT_TRUNCATE or in_log == copied:
                self._wal_pages = 0
        except (apsw.BusyError, apsw.LockedError):
            return
        except apsw.Error as error:
            raise translated(error, self._connection, "checkpoint") from error
        finally:
            self._connection.set_busy_timeout(self._busy_timeout_ms)


class SqliteReader:
    """A connection that only reads: it never checkpoints and never creates a file."""

    def __init__(self, path: Path, timeout_s: float = READ_TIMEOUT_S) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.set_busy_timeout(round(timeout_s * 1000))
        self._statements = Statements(for_sqlite)
        self._timeout_s = timeout_s

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        return _read(self._connection, self._statements, sql, params, self._timeout_s)

    def close(self) -> None:
        self._connection.close()


class _Void:
    """Stands in for the cursor of a transaction that is no more."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def execute(self, *_: object) -> NoReturn:
        raise self.error

    executemany = execute


def _connect(home: Home | None) -> apsw.Connection:
    if home is None:
        connection = apsw.Connection(":memory:")
    else:
        connection = apsw.Connection(str(home.path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _execute(connection, "PRAGMA journal_mode = WAL")
        _execute(connection, "PRAGMA synchronous = FULL")
    _execute(connection, "PRAGMA foreign_keys = ON")
    return connection


def _read(
    connection: apsw.Connection,
    statements: Statements,
    sql: str,
    params: Mapping[str, object],
    timeout_s: float,
) -> Sequence[Row]:
    statement = statements[sql]
    # Real time, whatever the store's clock says: this bounds work done by this machine.
    deadline = time.monotonic() + timeout_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
    try:
        if statement.lists:
            params = _with_lists(params, statement.lists)
        return _execute(connection, statement.sql, params)
    except Exception as error:
        raise _our_error(error, connection, sql, [params]) from error
    finally:
        connection.set_progress_handler(None)


def _execute(
    connection: apsw.Connection, sql: str, params: Mapping[str, object] | None = None
) -> Sequence[Row]:
    cursor: Any = connection.cursor()
    return cursor.execute(sql, params).fetchall()


def _with_lists(params: Mapping[str, Any], lists: frozenset[str]) -> dict[str, Any]:
    return {
        name: _json.encode(value).decode() if name in lists else value
        for name, value in params.items()
    }


def _our_error(
    error: Exception,
    connection: apsw.Connection,
    sql: str,
    params: Sequence[Mapping[str, object]],
) -> Exception:
    if isinstance(error, UnicodeEncodeError | OverflowError):
        for row in params:
            if (broken := unstorable(row, nul=False)) is not None:
                return InvalidInput(*broken)
    if isinstance(error, apsw.Error):
        return translated(error, connection, sql)
    return error
