"""SQLite connections: what every one of them is told, and reading with a deadline."""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from wakeful.store.database import Row
from wakeful.store.sqlite_errors import translated
from wakeful.store.sqlite_home import beside, has_content, kept_closed
from wakeful.store.statements import Statements, for_sqlite, unstorable
from wakeful.vocabulary.errors import InvalidInput, StoreRefused

STATEMENTS = 400  # that are kept prepared in memory: more than there are
PROGRESS_STEPS = 10_000  # steps of SQLite's machine between looks at the clock: under 1 ms

_json = msgspec.json.Encoder()


def connect(name: str, flags: int, vfs: str | None = None) -> apsw.Connection:
    """Connect without ever checkpointing on the way out."""
    try:
        connection = apsw.Connection(name, flags=flags, vfs=vfs)
    except apsw.Error as error:
        raise translated(error, None, name) from error
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return _with_lasting_plans(connection)


def connect_in_memory() -> apsw.Connection:
    """Connect to a database of its own, in memory."""
    return _with_lasting_plans(apsw.Connection(":memory:", statementcachesize=STATEMENTS))


def _with_lasting_plans(connection: apsw.Connection) -> apsw.Connection:
    # One plan per statement, whatever is bound to it: without this SQLite may plan anew each time
    # a statement runs, which costs more than the statement (28 % of the CPU of a turn).
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


@contextmanager
def connected_read_only(path: Path) -> Generator[apsw.Connection, None, None]:
    """Connect beside the process that has the database, or after it; change and create nothing."""
    with kept_closed(path) as is_closed:
        if not is_closed or has_content(beside(path, "-wal")):
            if not beside(path, "-shm").exists():
                raise StoreRefused(f"{beside(path, '-shm')} is missing: start wakeful once")
            connection = connect_beside(path)
        else:
            connection = connect_undisturbed(path)
        with closing(connection):
            yield connection


def connect_beside(path: Path) -> apsw.Connection:
    """Connect for reading a database that has a log."""
    return connect(str(path), apsw.SQLITE_OPEN_READONLY)


def connect_undisturbed(path: Path) -> apsw.Connection:
    """Connect for reading a database that nobody writes and that has no log.

    Otherwise SQLite would create the files of one.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return connect(f"file:{quote(str(path))}?immutable=1", flags)


def execute(
    connection: apsw.Connection, sql: str, params: Mapping[str, object] | None = None
) -> Sequence[Row]:
    """Execute one statement as it is and return its rows."""
    cursor: Any = connection.cursor()
    return cursor.execute(sql, params).fetchall()


class SqliteReader:
    """Single reads on a connection, each interrupted when it takes too long."""

    def __init__(self, connection: apsw.Connection, timeout_s: float) -> None:
        self._connection = connection
        self._statements = Statements(for_sqlite)
        self._timeout_s = timeout_s

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        statement = self._statements[sql]
        # Real time, whatever the store's clock says: this bounds work done by this machine.
        deadline = time.monotonic() + self._timeout_s
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
        try:
            return execute(self._connection, statement.sql, with_lists(params, statement.lists))
        except Exception as error:
            raise our_error(error, self._connection, sql, [params]) from error
        finally:
            self._connection.set_progress_handler(None)

    def close(self) -> None:
        self._connection.close()


def with_lists(params: Mapping[str, object], lists: frozenset[str]) -> Mapping[str, object]:
    """Return the parameters with lists as the JSON that SQLite gets."""
    if not lists:
        return params
    return {name: as_list(value) if name in lists else value for name, value in params.items()}


def as_list(value: object) -> str:
    """Return a list as SQLite gets it."""
    return _json.encode(value).decode()


def our_error(
    error: Exception,
    connection: apsw.Connection,
    sql: str,
    rows: Sequence[Mapping[str, object]],
) -> Exception:
    """Return our error for one that a statement with these parameters raised."""
    if isinstance(error, UnicodeEncodeError | OverflowError):
        for row in rows:
            if (broken := unstorable(row, nul=False)) is not None:
                return InvalidInput(*broken)
    return translated(error, connection, sql) if isinstance(error, apsw.Error) else error
