"""The files of a SQLite home: private, owned by one process, readable by others."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.store.databases import (
    add_note,
    content_of,
    killed,
    made,
    names_of,
    opened,
    wal_of,
)
from wakeful.store import sqlite, writer
from wakeful.store.sqlite import open_read_only
from wakeful.vocabulary.errors import StoreRefused

NAMES = "SELECT id FROM notes ORDER BY id"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home" / "wakeful.db"


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o277])
async def test_the_files_are_private_whatever_the_umask(path: Path, mask: int) -> None:
    path.parent.parent.mkdir()
    with umask(mask):
        store = await opened(path)
        await store.transact(lambda tx: add_note(tx, "a"))

        modes = {file.name: mode_of(file) for file in path.parent.iterdir()}
        folder = mode_of(path.parent)
        await store.close()

    assert folder == 0o700
    assert set(modes.values()) == {0o600}
    assert {"wakeful.db", "wakeful.db-wal", "wakeful.db-shm"} <= set(modes)


async def test_a_folder_that_was_there_keeps_its_mode(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o750)

    await made(path, notes=1)

    assert mode_of(path.parent) == 0o750


async def test_one_process_has_the_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeful.store.sqlite_home.LOCK_PATIENCE_S", 0.05)
    store = await opened(path)

    with pytest.raises(StoreRefused, match=f"{path} is in use by process {os.getpid()}"):
        await opened(path)

    await store.close()
    await (await opened(path)).close()


async def test_another_process_reads_what_was_committed(path: Path) -> None:
    store = await opened(path)
    await store.transact(lambda tx: add_note(tx, "a"))
    before = content_of(path)

    with open_read_only(path) as reader:
        found = reader.read(NAMES, {})
        await store.transact(lambda tx: add_note(tx, "b"))
        found_later = reader.read(NAMES, {})

    assert found == [("a",)]
    assert found_later == [("a",), ("b",)]
    assert content_of(path)["wakeful.db"] == before["wakeful.db"]
    await store.close()


async def test_reading_a_closed_database_creates_no_file(path: Path) -> None:
    await made(path, notes=2)
    before = sorted(path.parent.iterdir())

    with open_read_only(path) as reader:
        found = reader.read(NAMES, {})

    assert len(found) == 2
    assert sorted(path.parent.iterdir()) == before


async def test_reading_a_killed_database_sees_its_log_and_leaves_it(path: Path) -> None:
    await killed(path, notes=5)
    before = content_of(path)

    with open_read_only(path) as reader:
        found = reader.read(NAMES, {})

    assert len(found) == 5
    assert content_of(path) == before


async def test_a_reader_beside_cannot_write(path: Path) -> None:
    await made(path, notes=1)

    with open_read_only(path) as reader, pytest.raises(StoreRefused):
        reader.read("DELETE FROM notes", {})


async def test_the_log_is_emptied_when_the_store_is_idle(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_S", 0.02)
    store = await opened(path)
    await store.transact(lambda tx: add_note(tx, "a"))

    while wal_of(path).stat().st_size:
        await store.read("SELECT 1")

    assert await names_of(store) == ["a"]
    await store.close()


async def test_the_log_stays_small_under_load(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 200_000)
    store = await opened(path)

    for number in range(200):
        await store.transact(lambda tx, n=number: add_note(tx, str(n), "x" * 10_000))
    size = wal_of(path).stat().st_size
    await store.close()

    assert size < 400_000


async def test_a_reader_that_stays_does_not_stop_the_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 50_000)
    store = await opened(path)
    await store.transact(lambda tx: add_note(tx, "first"))

    with open_read_only(path) as reader:
        reader.read("SELECT 1", {})
        for number in range(50):
            await store.transact(lambda tx, n=number: add_note(tx, str(n), "x" * 10_000))

    assert len(await names_of(store)) == 51
    await store.close()


async def test_a_creation_that_was_cut_short_is_begun_again(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.with_name("wakeful.db.new").write_bytes(b"half a database")
    path.with_name("wakeful.db.new-journal").write_bytes(b"half a journal")

    store = await opened(path)
    await store.close()

    assert sorted(file.name for file in path.parent.iterdir()) == [
        "wakeful.db",
        "wakeful.db.lock",
        "wakeful.db.marker",
    ]


@contextmanager
def umask(mask: int) -> Generator[None, None, None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)
