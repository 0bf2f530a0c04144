"""Whether a SQLite database can be trusted, and if not, which table is damaged."""

from contextlib import closing
from pathlib import Path

import apsw

from wakeful.store.migrations import refuse_unknown
from wakeful.store.sqlite_connection import (
    connect_beside,
    connect_undisturbed,
    connected_read_only,
    execute,
)
from wakeful.store.sqlite_home import beside, file_errors, has_content, kept_closed
from wakeful.store.sqlite_wal import lost_transactions
from wakeful.vocabulary.errors import StoreDamaged, StoreRefused

QUICK_CHECK_BYTES = 32 * 1024 * 1024  # checked at every start up to this size: some 0.1 s
MAGIC = b"SQLite format 3\0"
_ADVICE = "stop, keep the files as they are, and restore a backup"


def refuse_damaged_file(path: Path) -> None:
    """Raise unless the file looks like a database of SQLite."""
    with file_errors(path), path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise StoreDamaged(f"{path} is not a database, or its first page is damaged: {_ADVICE}")


def refuse_damaged_content(path: Path) -> None:
    """Raise unless the database, which nobody has open, is whole and ours; change nothing."""
    has_log = has_content(beside(path, "-wal"))
    with closing(connect_beside(path) if has_log else connect_undisturbed(path)) as connection:
        _refuse_damaged_content(connection, path)


def _refuse_damaged_content(connection: apsw.Connection, path: Path) -> None:
    try:
        # The first read makes SQLite replay the log, in memory.
        execute(connection, "SELECT count(*) FROM sqlite_schema")
        refuse_damaged_log(connection, path)
        if path.stat().st_size <= QUICK_CHECK_BYTES:
            complaints = _complaints(connection, "quick_check")
            if complaints:
                raise StoreDamaged(f"{path} is damaged in {complaints[0]}: {_ADVICE}")
        if not connection.table_exists("main", "schema"):
            raise StoreRefused(f"{path} is the database of another program")
        version, min_binary = execute(connection, "SELECT version, min_binary FROM schema")[0]
        refuse_unknown(version, min_binary)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        where = " and ".join(damaged_tables(connection)) or "sqlite_schema"
        raise StoreDamaged(f"{path} is damaged in {where} ({error}): {_ADVICE}") from error


def refuse_damaged_log(connection: apsw.Connection, path: Path) -> None:
    """Raise if transactions that were acknowledged lie behind a damaged part of the log."""
    wal = beside(path, "-wal")
    if not wal.exists():
        return
    valid_frames, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    page_bytes: int = execute(connection, "PRAGMA page_size")[0][0]
    if lost_transactions(wal, max(valid_frames, 0), page_bytes):
        raise StoreDamaged(
            f"{wal} is damaged after {max(valid_frames, 0)} of its pages and acknowledged writes "
            f"lie behind: {_ADVICE}"
        )


def check(path: Path) -> list[str]:
    """Check everything, foreign keys included, and return what is wrong, naming the tables.

    Nothing is changed. The database may be in use; then its log is not looked at.
    """
    try:
        refuse_damaged_file(path)
        with connected_read_only(path) as connection:
            return _checked(connection, path)
    except (StoreDamaged, StoreRefused) as refusal:
        return [str(refusal)]


def _checked(connection: apsw.Connection, path: Path) -> list[str]:
    try:
        with kept_closed(path) as is_closed:
            if is_closed:
                execute(connection, "SELECT count(*) FROM sqlite_schema")
                refuse_damaged_log(connection, path)
        return [*_complaints(connection, "integrity_check"), *_broken_references(connection)]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        tables = damaged_tables(connection) or ["sqlite_schema"]
        return [f"{table}: {error}" for table in tables]


def damaged_tables(connection: apsw.Connection) -> list[str]:
    """Return the tables that do not check, one by one; empty if not even their list can be read."""
    try:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        names: list[str] = [row[0] for row in execute(connection, sql)]
    except apsw.Error:
        return []
    return [name for name in names if _is_damaged(connection, name)]


def _is_damaged(connection: apsw.Connection, table: str) -> bool:
    quoted = table.replace("'", "''")
    try:
        return execute(connection, f"PRAGMA quick_check('{quoted}')")[0][0] != "ok"
    except (apsw.CorruptError, apsw.NotADBError):
        return True


def _complaints(connection: apsw.Connection, pragma: str) -> list[str]:
    found: list[str] = [row[0] for row in execute(connection, f"PRAGMA {pragma}(10)")]
    if found == ["ok"]:
        return []
    tables = damaged_tables(connection)
    return [f"{' and '.join(tables) or 'unknown table'}: {line}" for line in found]


def _broken_references(connection: apsw.Connection) -> list[str]:
    rows = execute(connection, "PRAGMA foreign_key_check")
    return [f"{row[0]}: row {row[1]} refers to a missing row of {row[2]}" for row in rows[:10]]
