"""A database that cannot be trusted is refused with the reason, and left as it is."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import die_with_parent
from tests.integration.store.databases import (
    add_note,
    content_of,
    flip,
    killed,
    made,
    names_of,
    opened,
    put,
    remove,
    spoil_with,
    wal_of,
)
from wakeful.store.migrations import BINARY_VERSION
from wakeful.store.sqlite_check import check
from wakeful.vocabulary.errors import StoreDamaged, StoreRefused, WakefulError

WRITER = Path(__file__).with_name("writer_process.py")
NOTES = 30
PAGE = 4096
FRAME = PAGE + 24


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "wakeful.db"


async def refused(path: Path, kind: type[WakefulError], reason: str) -> None:
    """Assert that opening fails for this reason and changes nothing, however often."""
    before = content_of(path)
    for _ in range(2):
        with pytest.raises(kind, match=reason):
            await opened(path)
        assert content_of(path) == before


@pytest.mark.parametrize("position", [0, 10])
async def test_a_spoiled_first_page_is_refused(path: Path, position: int) -> None:
    flip(await made(path), position)

    await refused(path, StoreDamaged, "first page is damaged")


async def test_a_spoiled_list_of_tables_is_refused(path: Path) -> None:
    flip(await made(path), 100, 8)

    await refused(path, StoreDamaged, "damaged in sqlite_schema")


async def test_a_spoiled_inner_page_is_refused_with_its_table(path: Path) -> None:
    """F14: the damaged table is named."""
    await made(path)
    flip(path, PAGE * _root_page(path, "notes") - PAGE, 12)

    await refused(path, StoreDamaged, "damaged in notes")
    assert any("notes" in complaint for complaint in check(path))


async def test_any_spoiled_page_of_a_small_database_is_found_at_the_start(
    path: Path,
) -> None:
    await made(path, notes=2000)
    flip(path, PAGE * 20, PAGE)

    await refused(path, StoreDamaged, "damaged in notes")


@pytest.mark.parametrize("frame", [0, 1, NOTES // 2, NOTES])
@pytest.mark.parametrize("place", [0, 9, 17, 24, 2000], ids=str)
async def test_damage_in_the_middle_of_the_log_is_refused(
    path: Path, frame: int, place: int
) -> None:
    await killed(path, NOTES)
    flip(wal_of(path), 32 + frame * FRAME + place)

    await refused(path, StoreDamaged, "acknowledged writes lie behind")
    assert any("acknowledged writes lie behind" in complaint for complaint in check(path))


@pytest.mark.parametrize("position", [0, 4, 8, 12, 16, 20, 24, 31])
async def test_a_spoiled_header_of_the_log_is_refused(path: Path, position: int) -> None:
    await killed(path, NOTES)
    flip(wal_of(path), position)

    await refused(path, StoreDamaged, "acknowledged writes lie behind")


@pytest.mark.parametrize("kept", [1.0, 0.99, 0.5, 0.0])
async def test_a_torn_tail_of_the_log_is_normal(path: Path, kept: float) -> None:
    await killed(path, NOTES)
    wal = wal_of(path)
    frames_of_last = 2  # a note is a page of the table and one of its index
    lost = round(frames_of_last * FRAME * (1 - kept))
    os.truncate(wal, wal.stat().st_size - lost)

    store = await opened(path)
    found = await names_of(store)
    await store.close()

    assert len(found) == (NOTES if kept == 1.0 else NOTES - 1)


async def test_a_killed_database_opens_with_everything(path: Path) -> None:
    await killed(path, NOTES)

    store = await opened(path)
    found = await names_of(store)
    await store.close()

    assert len(found) == NOTES
    assert check(path) == []


async def test_an_empty_file_is_refused(path: Path) -> None:
    await made(path)
    os.truncate(path, 0)

    await refused(path, StoreDamaged, "is empty")


async def test_a_database_that_is_gone_is_not_replaced(path: Path) -> None:
    """F14: an empty one is never put in its place."""
    remove(await made(path))

    await refused(path, StoreDamaged, "is gone")
    assert content_of(path) == {}


async def test_a_log_without_its_database_is_not_replaced(path: Path) -> None:
    await killed(path, NOTES)
    remove(path)
    remove(path.with_name("wakeful.db.marker"))

    await refused(path, StoreDamaged, "is gone")
    assert set(content_of(path)) == {"wakeful.db-wal"}


async def test_a_database_without_the_log_it_needs_is_refused(path: Path) -> None:
    await killed(path, NOTES)
    remove(wal_of(path))

    await refused(path, StoreDamaged, "wal is missing")


async def test_a_log_that_another_program_has_copied_back_is_not_missed(path: Path) -> None:
    await killed(path, NOTES)
    looked_into_by_another_program(path)
    assert not wal_of(path).exists()

    store = await opened(path)

    assert len(await names_of(store)) == NOTES
    await store.close()


async def test_a_log_that_goes_after_another_program_was_there_is_missed(path: Path) -> None:
    await killed(path, NOTES)
    looked_into_by_another_program(path)
    store = await opened(path)
    await store.transact(lambda tx: add_note(tx, "last"))
    left = path.parent.with_name("left")
    shutil.copytree(path.parent, left)  # what the disk holds is what a crash leaves
    await store.close()
    remove(left / "wakeful.db-wal")

    await refused(left / path.name, StoreDamaged, "wal is missing")


async def test_whoever_looks_into_a_closed_database_harms_nothing(path: Path) -> None:
    await made(path, notes=3)
    looked_into_by_another_program(path)

    store = await opened(path)

    assert len(await names_of(store)) == 3
    await store.close()


async def test_a_copy_without_its_log_is_refused_however_new_it_looks(path: Path) -> None:
    await killed(path, NOTES)
    remove(wal_of(path))
    remove(path.with_name("wakeful.db-shm"))
    os.utime(path)

    await refused(path, StoreDamaged, "wal is missing")


async def test_a_killed_process_whose_database_another_program_looks_into_starts_again(
    path: Path,
) -> None:
    acknowledged = written_until_killed(path)
    looked_into_by_another_program(path)
    assert not wal_of(path).exists()

    store = await opened(path)

    assert set(acknowledged) <= set(await names_of(store))
    await store.close()


def written_until_killed(path: Path) -> list[str]:
    """Return what a process was told to be on disk before it was killed."""
    path.parent.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(path), "w"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().strip() for _ in range(200)]
        writer.kill()
    return acknowledged


def looked_into_by_another_program(path: Path) -> None:
    """Have Python's own SQLite read the database in a process that is the last to close it."""
    program = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1]);"
        "print(connection.execute('SELECT COUNT(*) FROM notes').fetchone()[0]); connection.close()"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True)


async def test_a_database_closed_well_needs_no_log(path: Path) -> None:
    await made(path, notes=3)

    assert not wal_of(path).exists()
    store = await opened(path)
    assert len(await names_of(store)) == 3
    await store.close()


@pytest.mark.parametrize("content", [b"hello\n", b"\0" * 8192, random.Random(1).randbytes(100)])
async def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    put(path, content)

    await refused(path, StoreDamaged, "is not a database")


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    put(path, b"")
    spoil_with(path, "CREATE TABLE theirs (id)")

    await refused(path, StoreRefused, "another program")


async def test_a_folder_is_refused(path: Path) -> None:
    put(path / "something", b"")

    await refused(path, StoreRefused, "cannot be used")


async def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    await made(path)
    spoil_with(path, f"UPDATE schema SET min_binary = {BINARY_VERSION + 1}")

    await refused(path, StoreRefused, "needs a binary")


async def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    await made(folder / "wakeful.db")
    before = content_of(folder / "wakeful.db")

    said = _opened_by_somebody_without_rights(folder)

    assert "StoreRefused" in said
    assert str(folder / "wakeful.db") in said
    assert content_of(folder / "wakeful.db") == before


async def test_a_row_without_the_row_it_refers_to_is_named(path: Path) -> None:
    await made(path)
    spoil_with(path, "INSERT INTO letters (id, note_id) VALUES ('l', 'no such note')")

    assert check(path) == ["letters: row 1 refers to a missing row of notes"]


async def test_references_are_enforced(path: Path) -> None:
    store = await opened(path)

    with pytest.raises(WakefulError, match="FOREIGN KEY"):
        await store.transact(
            lambda tx: tx.run("INSERT INTO letters (id, note_id) VALUES ('l', 'none')")
        )

    await store.close()


async def test_a_check_of_a_healthy_database_finds_nothing(path: Path) -> None:
    await made(path)
    before = content_of(path)

    assert check(path) == []
    assert content_of(path) == before


def _root_page(path: Path, table: str) -> int:
    [(page,)] = spoil_with(path, f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'")
    return page


def _opened_by_somebody_without_rights(folder: Path) -> str:
    """Open the store in a process that may read the folder but not write to it."""
    code = f"""
import asyncio, os
from pathlib import Path
os.chmod({str(folder)!r}, 0o555)
for file in Path({str(folder)!r}).iterdir():
    file.chmod(0o444)
for parent in Path({str(folder)!r}).parents:
    if os.stat(parent).st_uid == os.getuid() and parent.name.startswith(("pytest", "test")):
        os.chmod(parent, 0o755)
from wakeful.store.sqlite import open_sqlite
from wakeful.store.migrations import Migration
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import WakefulError
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
async def main():
    try:
        await open_sqlite(Path({str(folder / "wakeful.db")!r}), clock=SystemClock(), migrations=[])
    except WakefulError as error:
        print(repr(error))
asyncio.run(main())
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return process.stdout
