"""SQLite: a file, or memory, with one writer and readers that never wait for it."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

import apsw

from wakeful.store.backend import Backend
from wakeful.store.database import READ_TIMEOUT_S, Lock, Row, Store
from wakeful.store.full_text import SQLITE_FULL_TEXT
from wakeful.store.grouped import GroupedStore
from wakeful.store.migrations import Migration, migrate, packaged
from wakeful.store.sqlite_check import refuse_damaged_content, refuse_damaged_file
from wakeful.store.sqlite_connection import (
    SqliteReader,
    as_list,
    connect,
    connect_in_memory,
    connected_read_only,
    execute,
    our_error,
    with_lists,
)
from wakeful.store.sqlite_errors import translated
from wakeful.store.sqlite_home import COUNTED, Home
from wakeful.store.statements import ListStatements, Statement, Statements, for_sqlite
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreDamaged, StoreFailed

BUSY_TIMEOUT_S = 5.0  # how long a foreign process may hold the database
CHECKPOINT_BYTES = 16 * 1024 * 1024  # the write-ahead log is copied back above this size
PAGE_BYTES = 4096
_PLAIN = (str, int)  # what a list may have as its only value, to be compared with as it is


@dataclass(frozen=True, kw_only=True)
class SqliteOptions:
    """How a database file is opened; `vfs` names SQLite's way to the disk."""

    migrations: Sequence[Migration]
    busy_timeout_s: float = BUSY_TIMEOUT_S
    read_timeout_s: float = READ_TIMEOUT_S
    vfs: str | None = None


async def open_sqlite(
    path: Path | None,
    *,
    clock: Clock,
    migrations: Sequence[Migration] | None = None,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
    vfs: str | None = None,
) -> Store:
    """Open the database at `path`, creating it if there never was one; None is in memory.

    Raise StoreRefused if another process has it or it may not be used, StoreDamaged if it cannot
    be trusted; in both cases nothing was changed.
    """
    options = SqliteOptions(
        migrations=packaged() if migrations is None else migrations,
        busy_timeout_s=busy_timeout_s,
        read_timeout_s=read_timeout_s,
        vfs=vfs,
    )
    if path is None:
        store = GroupedStore(
            lambda: _in_memory(options),
            clock=clock,
            open_reader=None,
            full_text=SQLITE_FULL_TEXT,
        )
    else:
        store = GroupedStore(
            lambda: _in_file(path, options),
            clock=clock,
            open_reader=lambda: _reader(path, options),
            full_text=SQLITE_FULL_TEXT,
        )
    await store.start()
    return store


@contextmanager
def open_read_only(
    path: Path, timeout_s: float = READ_TIMEOUT_S
) -> Generator[SqliteReader, None, None]:
    """Read a database beside the process that has it, or after it.

    Nothing is written: no checkpoint, no file. While it lasts, a store cannot be opened.
    """
    refuse_damaged_file(path)
    with connected_read_only(path) as connection:
        connection.set_busy_timeout(round(timeout_s * 1000))
        yield SqliteReader(connection, timeout_s)


class SqliteBackend(Backend):
    """The one connection that writes and checkpoints."""

    def __init__(
        self,
        connection: apsw.Connection,
        home: Home | None,
        options: SqliteOptions,
        commits: int = 0,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._home = home
        self._busy_timeout_ms = round(options.busy_timeout_s * 1000)
        self._statements = Statements(for_sqlite)
        self._list_statements = ListStatements()
        self._reader = SqliteReader(connection, options.read_timeout_s)
        self._is_fatal = False
        self._may_be_in_log = False  # a commit that was refused
        self._commits = commits
        self._changes_before = 0
        self._wal_pages = 0
        self._checkpoint_pages = CHECKPOINT_BYTES // PAGE_BYTES
        connection.set_wal_hook(self._committed)  # this also ends automatic checkpoints
        connection.set_busy_timeout(self._busy_timeout_ms)
        self._live_cursor: Any = connection.cursor()
        self._cursor: Any = self._live_cursor
        self._live_cursor.execute("PRAGMA foreign_keys = ON")

    def all(self, sql: str, /, **params: object) -> Sequence[Row]:
        statement = self._statements[sql]
        try:
            text = self._with_lists(sql, statement, params) if statement.lists else statement.sql
            return self._cursor.execute(text, params).fetchall()
        except Exception as error:
            self._void(error, sql, [params])

    def one(self, sql: str, /, **params: object) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, /, **params: object) -> int:
        # Rows that come back are fetched: a statement counts once it is finished.
        self.all(sql, **params)
        return self._connection.changes()

    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        statement = self._statements[sql]
        try:
            given = [with_lists(row, statement.lists) for row in rows] if statement.lists else rows
            self._cursor.executemany(statement.sql, given).fetchall()
        except Exception as error:
            self._void(error, sql, rows)

    def _with_lists(self, sql: str, statement: Statement, params: dict[str, object]) -> str:
        """Put the lists among the parameters as SQLite gets them; return the text for them."""
        ones: list[str] = []
        for name in statement.lists:
            values = cast("Sequence[object]", params[name])
            if _is_one_value(values):
                params[name] = values[0]
                ones.append(name)
            else:
                params[name] = as_list(values)
        return self._list_statements[sql, frozenset(ones)] if ones else statement.sql

    def begin(self) -> None:
        self._control("BEGIN IMMEDIATE")
        self._changes_before = self._connection.total_changes()

    def take(self, locks: Sequence[Lock]) -> None:
        for lock in locks:
            if lock.space.ensure is not None:
                self.run(lock.space.ensure, key=lock.key)

    def commit(self) -> None:
        if isinstance(self._cursor, _Void):
            raise self._cursor.error
        if self._home is None or self._connection.total_changes() == self._changes_before:
            self._control("COMMIT")
            return
        commits = (self._commits + 1) % COUNTED
        self._control(f"PRAGMA user_version = {commits}")
        self._may_be_in_log = True
        self._control("COMMIT")
        self._may_be_in_log = False
        self._commits = commits
        self._home.note_commits(commits)

    def rollback(self) -> None:
        self._cursor = self._live_cursor
        if self._connection.in_transaction:
            self._control("ROLLBACK")
        if self._may_be_in_log and not self._is_fatal:
            self._take_back()

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        self._control("PRAGMA query_only = ON")
        try:
            return self._reader.read(sql, params)
        finally:
            self._control("PRAGMA query_only = OFF")

    def tidy(self, *, is_idle: bool) -> bool:
        if self._wal_pages == 0:
            return False
        if is_idle:
            return not self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        if self._wal_pages > self._checkpoint_pages:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        return True

    def close(self) -> None:
        """Leave a complete database without a log, unless the disk is not to be trusted."""
        try:
            if self._home is not None and not self._is_fatal:
                with suppress(StoreFailed, StoreDamaged):
                    if self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE):
                        self._home.mark_closed()
                        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        finally:
            self._connection.close()
            if self._home is not None:
                self._home.leave()

    def start(self, migrations: Sequence[Migration], *, wal_pages: int = 0) -> None:
        """Bring the schema up to date."""
        self._wal_pages = wal_pages
        self.begin()
        try:
            has_schema = self._connection.table_exists("main", "schema")
            migrate(lambda sql: self.all(sql), migrations, "sqlite", has_schema=has_schema)
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def _take_back(self) -> None:
        """See to it that nobody finds a refused commit in the log, even if this process is killed.

        SQLite writes a commit to the log before its index: one that finds no room in the index is
        refused and yet whole in the log, for whoever reads that next without the index.
        """
        assert self._home is not None
        try:
            pages, _ = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            self._home.end_log_after(pages)
        except (apsw.Error, OSError) as error:
            raise self._noted(
                StoreFailed(f"a refused commit could not be taken out of the log ({error})")
            ) from error
        self._may_be_in_log = False

    def _control(self, sql: str) -> None:
        try:
            self._live_cursor.execute(sql)
        except apsw.Error as error:
            raise self._noted(translated(error, self._connection, sql)) from error

    def _void(self, error: Exception, sql: str, rows: Sequence[Mapping[str, object]]) -> NoReturn:
        if isinstance(self._cursor, _Void):
            raise error
        ours = self._noted(our_error(error, self._connection, sql, rows))
        # SQLite may have rolled back by itself: what follows would commit statement by statement.
        self._cursor = _Void(ours)
        raise ours from error

    def _noted(self, error: Exception) -> Exception:
        self._is_fatal = self._is_fatal or isinstance(error, StoreFailed | StoreDamaged)
        return error

    def _committed(self, _connection: object, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> bool:
        """Copy the log back; return whether all of it was."""
        # It must not wait for readers: callers of the next group would wait with it.
        self._connection.set_busy_timeout(0)
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=mode)
            is_whole = in_log == copied
        except apsw.Error as error:
            ours = self._noted(translated(error, self._connection, "checkpoint"))
            if isinstance(ours, StoreFailed | StoreDamaged):
                raise ours from error
            is_whole = False  # busy or full: the log stays as it is and is tried again later
        finally:
            self._connection.set_busy_timeout(self._busy_timeout_ms)
        step = CHECKPOINT_BYTES // PAGE_BYTES
        self._checkpoint_pages = step if is_whole else self._wal_pages + step
        if is_whole:
            self._wal_pages = 0
        return is_whole


def _is_one_value(values: object) -> bool:
    if not isinstance(values, list):
        return False
    listed = cast("list[object]", values)
    return len(listed) == 1 and type(listed[0]) in _PLAIN


class _Void:
    """Stands in for the cursor of a transaction that is no more."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def execute(self, *_: object) -> NoReturn:
        raise self.error

    executemany = execute


def _in_memory(options: SqliteOptions) -> Backend:
    connection = connect_in_memory()
    backend = SqliteBackend(connection, None, options)
    backend.start(options.migrations)
    return backend


def backend_in_memory() -> Backend:
    """Return a database of its own, in memory, with the schema of this release."""
    return _in_memory(SqliteOptions(migrations=packaged()))


def _in_file(path: Path, options: SqliteOptions) -> Backend:
    home = Home(path)
    try:
        if not home.has_database():
            home.create(lambda draft: _build(draft, options))
        return _opened(home, options)
    except BaseException:
        home.leave()
        raise


def _opened(home: Home, options: SqliteOptions) -> Backend:
    refuse_damaged_file(home.path)
    refuse_damaged_content(home.path)
    connection = connect(str(home.path), apsw.SQLITE_OPEN_READWRITE, options.vfs)
    try:
        execute(connection, "PRAGMA journal_mode = WAL")
        execute(connection, "PRAGMA synchronous = FULL")
        commits: int = execute(connection, "PRAGMA user_version")[0][0]
        home.mark_open(commits)
        backend = SqliteBackend(connection, home, options, commits)
        pages, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        backend.start(options.migrations, wal_pages=max(pages, 0))
        return backend
    except apsw.Error as error:
        connection.close()
        raise translated(error, connection, str(home.path)) from error
    except BaseException:
        connection.close()
        raise


def _build(draft: Path, options: SqliteOptions) -> None:
    connection = connect(str(draft), apsw.SQLITE_OPEN_READWRITE, options.vfs)
    try:
        # A half-built draft is thrown away, so nothing needs to be undone in it.
        execute(connection, "PRAGMA journal_mode = MEMORY")
        SqliteBackend(connection, None, options).start(options.migrations)
        execute(connection, "PRAGMA journal_mode = WAL")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    finally:
        connection.close()


def _reader(path: Path, options: SqliteOptions) -> SqliteReader:
    connection = connect(str(path), apsw.SQLITE_OPEN_READONLY, options.vfs)
    connection.set_busy_timeout(round(options.read_timeout_s * 1000))
    return SqliteReader(connection, options.read_timeout_s)
