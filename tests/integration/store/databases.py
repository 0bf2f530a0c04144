"""SQLite databases on disk: made, killed, spoiled and compared."""

import shutil
from pathlib import Path
from typing import Any

import apsw

from wakeful.store.database import Store, Tx
from wakeful.store.migrations import Migration
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import SystemClock

TABLES = Migration(
    1,
    "tables",
    """
    CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE letters (id TEXT PRIMARY KEY, note_id TEXT REFERENCES notes (id));
    """,
)


async def opened(path: Path, **options: Any) -> Store:
    return await open_sqlite(path, clock=SystemClock(), migrations=[TABLES], **options)


def add_note(tx: Tx, name: str, body: str = "") -> str:
    tx.run("INSERT INTO notes (id, body) VALUES (:id, :body)", id=name, body=body)
    return name


async def names_of(store: Store) -> list[str]:
    return [row[0] for row in await store.read("SELECT id FROM notes ORDER BY id")]


async def made(path: Path, notes: int = 200, body_bytes: int = 200) -> Path:
    """Make a database, one commit per note, and close it."""
    store = await opened(path)
    await _fill(store, notes, body_bytes)
    await store.close()
    return path


async def killed(path: Path, notes: int = 30, body_bytes: int = 200) -> Path:
    """Make a database whose process died: one commit per note, all of them in the log."""
    alive = path.parent.with_name(path.parent.name + "-alive") / path.name
    store = await opened(alive)
    await _fill(store, notes, body_bytes)
    shutil.copytree(alive.parent, path.parent)  # what the disk holds is what a crash leaves
    await store.close()
    return path


async def _fill(store: Store, notes: int, body_bytes: int) -> None:
    for number in range(notes):
        await store.transact(lambda tx, n=number: add_note(tx, f"{n:04}", "x" * body_bytes))


def flip(path: Path, position: int, count: int = 1) -> None:
    """Spoil bytes."""
    with path.open("r+b") as file:
        file.seek(position)
        spoiled = bytes(byte ^ 0xFF for byte in file.read(count))
        file.seek(position)
        file.write(spoiled)


def spoil_with(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Do behind the store's back what only another program would do."""
    connection: Any = apsw.Connection(str(path))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def content_of(path: Path) -> dict[str, bytes]:
    """What must stay as it is: the database and its log."""
    return {file.name: file.read_bytes() for file in (path, wal_of(path)) if file.is_file()}
