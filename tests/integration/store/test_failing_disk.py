"""A disk that fails is believed the first time; a disk that is full is waited for."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.children import die_with_parent
from tests.integration.store.databases import add_note, names_of, opened
from tests.integration.store.faulty_disk import (
    FaultyDisk,
    failing_sync,
    failing_write,
    full,
    full_for,
)
from wakeful.store import sqlite
from wakeful.store.database import Store, Tx
from wakeful.store.sqlite_check import check
from wakeful.vocabulary.errors import StoreBusy, StoreFailed, StoreFull

WRITER = Path(__file__).with_name("writer_process.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "wakeful.db"


@pytest.mark.parametrize("fault", [failing_sync, failing_write])
async def test_after_one_failed_sync_nothing_is_acknowledged_any_more(
    path: Path, fault: Callable[[str], None]
) -> None:
    disk = FaultyDisk()
    store = await opened(path, vfs=disk.name)
    await store.transact(lambda tx: add_note(tx, "before"))
    disk.on_sync, disk.on_write = (
        (fault, disk.on_write) if fault is failing_sync else (disk.on_sync, fault)
    )

    with pytest.raises(StoreFailed):
        await store.transact(lambda tx: add_note(tx, "failed"))
    disk.repair()
    await store.wait_failed()
    with pytest.raises(StoreFailed):
        await store.transact(lambda tx: add_note(tx, "later"))
    await store.close()

    again = await opened(path)
    found = await names_of(again)
    await again.close()
    assert "before" in found
    assert "later" not in found


async def test_a_failed_store_touches_the_disk_no_more(path: Path) -> None:
    disk = FaultyDisk()
    store = await opened(path, vfs=disk.name)
    disk.on_sync = failing_sync
    with pytest.raises(StoreFailed):
        await store.transact(lambda tx: add_note(tx, "failed"))
    disk.repair()
    syncs = disk.syncs

    await store.close()

    assert disk.syncs == syncs


async def test_a_failed_checkpoint_is_a_failed_sync(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 0)
    disk = FaultyDisk()
    store = await opened(path, vfs=disk.name)

    def fail_on_database(name: str) -> None:
        if name.endswith(".db"):
            failing_sync(name)

    disk.on_sync = fail_on_database
    await store.transact(lambda tx: add_note(tx, "in the log"))
    await store.wait_failed()
    await store.close()

    again = await opened(path)
    found = await names_of(again)
    await again.close()
    assert found == ["in the log"]


async def test_a_full_disk_is_told_to_the_callers_and_passes(path: Path) -> None:
    disk = FaultyDisk()
    store = await opened(path, vfs=disk.name)
    await store.transact(lambda tx: add_note(tx, "before"))

    def write(tx: Tx) -> None:
        add_note(tx, "half", "x" * 50_000)
        add_note(tx, "other half", "x" * 50_000)

    disk.on_write = full
    results = await asyncio.gather(
        *(store.transact(write) for _ in range(3)), return_exceptions=True
    )
    found = await names_of(store)
    disk.repair()
    await store.transact(lambda tx: add_note(tx, "after"))

    assert [type(result) for result in results] == [StoreFull] * 3
    assert found == ["before"]
    assert await names_of(store) == ["after", "before"]
    await store.close()
    assert check(path) == []


async def test_a_disk_full_while_checkpointing_disturbs_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F12: full in the middle of a checkpoint."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 0)
    disk = FaultyDisk()
    store = await opened(path, vfs=disk.name)
    disk.on_write = full_for(".db")

    for name in "abc":
        await store.transact(lambda tx, name=name: add_note(tx, name))
    disk.repair()
    await store.transact(lambda tx: add_note(tx, "d"))
    await store.close()

    again = await opened(path)
    found = await names_of(again)
    await again.close()
    assert found == ["a", "b", "c", "d"]


async def test_a_really_full_file_system_recovers_by_itself(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", "600k") as folder:
        path = folder / "home" / "wakeful.db"
        store = await opened(path)
        stored = await filled(store)
        found_when_full = await names_of(store)
        make_room(folder)
        await store.transact(lambda tx: add_note(tx, "after"))
        found = await names_of(store)
        await store.close()
        complaints = check(path)

    assert found_when_full == stored
    assert found == [*stored, "after"]
    assert complaints == []


@pytest.mark.timeout(60)
async def test_what_was_refused_for_want_of_room_is_not_there_after_a_kill(tmp_path: Path) -> None:
    """The log had room for the commit, its index in memory had none: SQLite says so at the end."""
    with small_file_system(tmp_path / "disk", "64m") as disk:
        path = disk / "home" / "wakeful.db"
        await (await opened(path)).close()
        make_long_log(path)
        store = await opened(path)
        await store.transact(lambda tx: add_note(tx, "long", "x" * 14_000_000))
        take_all_room(disk / "ballast")
        stored = await filled(store)
        shutil.copytree(path.parent, tmp_path / "killed")
        (disk / "ballast").unlink()
        await store.transact(lambda tx: add_note(tx, "later"))
        await store.close()

    again = await opened(tmp_path / "killed" / "wakeful.db")
    found = await names_of(again)
    await again.close()
    assert len(stored) > 10
    assert found == [*stored, "long"]


async def test_a_database_held_by_somebody_else_is_waited_for(path: Path) -> None:
    store = await opened(path)
    other: Any = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    async with asyncio.TaskGroup() as tasks:
        write = tasks.create_task(store.transact(lambda tx: add_note(tx, "a")))
        found = await names_of(store)
        was_done = write.done()
        other.execute("ROLLBACK")

    assert found == []
    assert not was_done
    assert write.result() == "a"
    other.close()
    await store.close()


async def test_a_database_held_for_too_long_makes_callers_busy(path: Path) -> None:
    """F13: waited for up to a limit, then told, and nothing lost."""
    store = await opened(path, busy_timeout_s=0.1)
    other: Any = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    results = await asyncio.gather(
        *(store.transact(lambda tx, name=name: add_note(tx, name)) for name in "abc"),
        return_exceptions=True,
    )
    other.execute("ROLLBACK")
    other.close()
    await store.transact(lambda tx: add_note(tx, "after"))

    assert [type(result) for result in results] == [StoreBusy] * 3
    assert await names_of(store) == ["after"]
    await store.close()


@pytest.mark.timeout(60)
async def test_what_was_acknowledged_survives_kills_under_load(path: Path) -> None:
    acknowledged: set[str] = set()

    for generation in range(6):
        acknowledged |= killed_after(200 + 70 * generation, [], path, str(generation))
        store = await opened(path)
        stored = set(await names_of(store))
        await store.close()

        assert acknowledged <= stored
        assert check(path) == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("moment", [1, 2, 7])
@pytest.mark.parametrize("fault", ["error=EIO", "signal=KILL"])
@pytest.mark.timeout(60)
async def test_a_fault_at_any_sync_loses_nothing_acknowledged(
    path: Path, moment: int, fault: str
) -> None:
    await (await opened(path)).close()
    # SQLite may go on after a failed sync of the folder: the store has synced it before.
    strace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync"]
    strace += ["-e", f"inject=fdatasync:{fault}:when={moment}"]

    acknowledged = killed_after(2000, strace, path, "x")

    store = await opened(path)
    stored = set(await names_of(store))
    await store.close()
    assert acknowledged <= stored


async def filled(store: Store) -> list[str]:
    """Write until there is no room; return what was stored."""
    stored: list[str] = []
    while True:
        name = f"{len(stored):03}"
        try:
            await store.transact(lambda tx, name=name: add_note(tx, name, "x" * 20_000))
        except StoreFull:
            return stored
        stored.append(name)


def make_long_log(path: Path) -> None:
    """Leave a log with much more room in it than it holds."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    cursor: Any = connection.cursor()
    cursor.execute("PRAGMA wal_autocheckpoint = 0")
    cursor.execute("INSERT INTO notes (id, body) VALUES ('large', zeroblob(22000000))")
    cursor.execute("DELETE FROM notes")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    (commits,) = cursor.execute("PRAGMA user_version").fetchone()
    cursor.execute(f"PRAGMA user_version = {commits}")  # begins the log anew
    connection.close()


def take_all_room(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 65_536):
            pass


def make_room(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=4m", str(folder)], check=True)


def killed_after(count: int, prefix: Sequence[str], path: Path, tag: str) -> set[str]:
    """Run a process that writes until it fails, or kill it after so many answers."""
    acknowledged: set[str] = set()
    with subprocess.Popen(
        [*prefix, sys.executable, str(WRITER), str(path), tag],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=WRITER.parents[3],
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                acknowledged.add(line.strip())
            if len(acknowledged) == count:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return acknowledged


@contextmanager
def small_file_system(folder: Path, size: str) -> Generator[Path, None, None]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
