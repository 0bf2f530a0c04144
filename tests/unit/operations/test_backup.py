"""A backup is whole, private, and never put over anything by accident."""

import stat
from pathlib import Path

import pytest

from wakeful.operations import backup
from wakeful.runtime import Runtime
from wakeful.store.sqlite import open_read_only
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput, StoreDamaged, StoreRefused

CLOCK = ManualClock()


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def texts(database: Path) -> list[str]:
    with open_read_only(database) as reader:
        return [row[0] for row in reader.read("SELECT text FROM stimuli ORDER BY id", {})]


def epoch(database: Path) -> str:
    with open_read_only(database) as reader:
        return reader.read("SELECT epoch FROM bus_head", {})[0][0]


async def say(home: Path, *words: str) -> None:
    async with Runtime(home=home) as runtime:
        for word in words:
            await runtime.wait(await runtime.send(word))


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await say(tmp_path / "home", "one", "two")
    return tmp_path / "home"


async def test_a_backup_is_taken_while_the_runtime_works(home: Path, tmp_path: Path):
    target = tmp_path / "copy.db"

    async with Runtime(home=home) as runtime:
        await runtime.wait(await runtime.send("three"))
        made = backup.create("sqlite", home / "wakeful.db", target, quiet)
        await runtime.wait(await runtime.send("four"))

    assert texts(target) == ["one", "two", "three"]
    assert texts(home / "wakeful.db") == ["one", "two", "three", "four"]
    assert made.size_bytes == target.stat().st_size


async def test_a_backup_is_one_file_that_only_its_owner_reads(home: Path, tmp_path: Path):
    target = backup.default_file(home, CLOCK)

    backup.create("sqlite", home / "wakeful.db", target, quiet)

    assert [file.name for file in target.parent.iterdir()] == [target.name]
    assert mode(target) == 0o600
    assert mode(target.parent) == 0o700


async def test_a_backup_never_replaces_a_file(home: Path, tmp_path: Path):
    target = tmp_path / "copy.db"
    target.write_text("mine")

    with pytest.raises(InvalidInput, match="exists already"):
        backup.create("sqlite", home / "wakeful.db", target, quiet)

    assert target.read_text() == "mine"


async def test_a_damaged_backup_is_found(home: Path, tmp_path: Path):
    target = tmp_path / "copy.db"
    backup.create("sqlite", home / "wakeful.db", target, quiet)
    content = bytearray(target.read_bytes())
    content[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    target.write_bytes(content)

    with pytest.raises(StoreDamaged, match="is damaged"):
        backup.verify(target)


@pytest.mark.parametrize("content", [b"", b"SQLite", b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_backup_is_refused(content: bytes, tmp_path: Path):
    (tmp_path / "copy.db").write_bytes(content)

    with pytest.raises(StoreDamaged):
        backup.verify(tmp_path / "copy.db")


def test_a_missing_backup_is_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="there is no file"):
        backup.verify(tmp_path / "copy.db")


async def test_a_restore_brings_everything_back_under_a_new_epoch(home: Path, tmp_path: Path):
    target, other = tmp_path / "copy.db", tmp_path / "other" / "wakeful.db"
    backup.create("sqlite", home / "wakeful.db", target, quiet)

    backup.restore("sqlite", target, other, CLOCK, quiet, force=False)

    assert texts(other) == ["one", "two"]
    assert epoch(other) != epoch(home / "wakeful.db")
    assert mode(other) == 0o600
    await say(other.parent, "three")
    assert texts(other) == ["one", "two", "three"]


async def test_a_restore_never_touches_a_database_unless_forced(home: Path, tmp_path: Path):
    target, database = tmp_path / "copy.db", home / "wakeful.db"
    backup.create("sqlite", database, target, quiet)
    await say(home, "three")

    with pytest.raises(StoreRefused, match="exists already; --force"):
        backup.restore("sqlite", target, database, CLOCK, quiet, force=False)

    assert texts(database) == ["one", "two", "three"]


async def test_a_forced_restore_keeps_what_was_there(home: Path, tmp_path: Path):
    target, database = tmp_path / "copy.db", home / "wakeful.db"
    backup.create("sqlite", database, target, quiet)
    await say(home, "three")

    done = backup.restore("sqlite", target, database, CLOCK, quiet, force=True)

    assert texts(database) == ["one", "two"]
    assert texts(Path(done.moved[0])) == ["one", "two", "three"]
    await say(home, "four")
    assert texts(database) == ["one", "two", "four"]


async def test_a_restore_waits_for_no_running_runtime(home: Path, tmp_path: Path):
    target = tmp_path / "copy.db"
    backup.create("sqlite", home / "wakeful.db", target, quiet)

    async with Runtime(home=home) as runtime:
        with pytest.raises(StoreRefused, match="is in use by process"):
            backup.restore("sqlite", target, home / "wakeful.db", CLOCK, quiet, force=True)
        assert await runtime.wait(await runtime.send("three")) is not None


def test_postgresql_has_its_own_tools(tmp_path: Path):
    address = "postgresql://db/wakeful"

    with pytest.raises(StoreRefused, match="use pg_dump"):
        backup.create(address, tmp_path / "a", tmp_path / "b", quiet)
    with pytest.raises(StoreRefused, match="use pg_restore"):
        backup.restore(address, tmp_path / "a", tmp_path / "b", CLOCK, quiet, force=True)
