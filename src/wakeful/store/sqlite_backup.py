"""Whole copies of a SQLite database, taken beside a running store, and put back in its place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

from wakeful.store.migrations import refuse_unknown
from wakeful.store.sqlite_check import check, refuse_damaged_file
from wakeful.store.sqlite_connection import connect, connected_read_only, execute
from wakeful.store.sqlite_errors import translated
from wakeful.store.sqlite_home import Home, beside, create_private, file_errors, sync
from wakeful.vocabulary.errors import InvalidInput, StoreDamaged, StoreRefused

STEP_PAGES = 2048  # 8 MiB between two reports of progress

Progress = Callable[[int, int], object]  # pages done, pages in all


@dataclass(frozen=True, kw_only=True)
class Copy:
    """What a copy holds."""

    schema_version: int
    size_bytes: int


def copy_out(source: Path, target: Path, progress: Progress) -> Copy:
    """Copy the database at `source` to a new file, as it was at one instant.

    The store may be running: it neither waits nor notices. The copy is checked before it gets its
    name, so that a file of that name is always a whole one.
    """
    if target.exists():
        raise InvalidInput("file", f"{target} exists already; choose another name")
    refuse_damaged_file(source)
    draft = beside(target, ".partial")
    with file_errors(target):
        draft.unlink(missing_ok=True)
        create_private(draft)
    try:
        with connected_read_only(source) as connection:
            _copy(connection, draft, progress, {})
        found = inspected(draft)
        with file_errors(target):
            sync(draft)
            draft.rename(target)
            sync(target.parent)
        return found
    finally:
        draft.unlink(missing_ok=True)


def inspected(copy: Path) -> Copy:
    """Check a copy whole and return what it holds; raise if it cannot be put back."""
    if not copy.is_file():
        raise InvalidInput("file", f"there is no file {copy}")
    refuse_damaged_file(copy)
    complaints = check(copy)
    if complaints:
        raise StoreDamaged(f"{copy} is damaged: {complaints[0]}")
    with connected_read_only(copy) as connection:
        if not connection.table_exists("main", "schema"):
            raise StoreRefused(f"{copy} is the database of another program")
        version, min_binary = execute(connection, "SELECT version, min_binary FROM schema")[0]
    refuse_unknown(version, min_binary)
    return Copy(schema_version=version, size_bytes=copy.stat().st_size)


def put_back(
    copy: Path,
    path: Path,
    *,
    aside: str | None,
    changes: Mapping[str, Mapping[str, object]],
    progress: Progress,
) -> list[Path]:
    """Make the database at `path` from a copy; raise if a store has it open.

    `changes` are statements that the new database starts with. What was there before is moved
    `aside`, to a name with that ending; None refuses to touch it. Returns what was moved.
    """
    inspected(copy)
    home = Home(path)
    try:
        remains = [path, *(beside(path, ending) for ending in ("-wal", "-shm", ".marker"))]
        old = [file for file in remains if file.exists()]
        if old and aside is None:
            raise StoreRefused(f"{path} exists already; --force moves it aside and restores")
        with file_errors(path):
            moved = [file.rename(file.with_name(f"{file.name}.{aside}")) for file in old]
        with connected_read_only(copy) as connection:
            home.create(lambda draft: _copy(connection, draft, progress, changes, wal=True))
        home.mark_open()
        home.mark_closed()
        return moved
    finally:
        home.leave()


def _copy(
    source: apsw.Connection,
    draft: Path,
    progress: Progress,
    changes: Mapping[str, Mapping[str, object]],
    *,
    wal: bool = False,
) -> None:
    target = connect(str(draft), apsw.SQLITE_OPEN_READWRITE)
    try:
        # Held open, it keeps the source as it is at this instant, whatever is written meanwhile.
        execute(source, "BEGIN")
        execute(source, "SELECT count(*) FROM sqlite_schema")
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(STEP_PAGES)
                progress(backup.page_count - backup.remaining, backup.page_count)
        execute(source, "COMMIT")
        execute(target, "PRAGMA journal_mode = DELETE")  # one file, complete by itself
        for sql, params in changes.items():
            execute(target, sql, params)
        if wal:
            execute(target, "PRAGMA journal_mode = WAL")
            target.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    except apsw.Error as error:
        raise translated(error, target, str(draft)) from error
    finally:
        target.close()
