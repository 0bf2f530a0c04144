"""Backups: a whole copy of the database while it runs, checked, and put back as a new epoch."""

from datetime import UTC, datetime
from pathlib import Path

from wakeful.store.opening import is_postgres
from wakeful.store.sqlite_backup import Progress, copy_out, inspected, put_back
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreRefused
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record

FOLDER = "backups"

# A reader that comes back with a cursor of before must be told to read anew.
_NEW_EPOCH = "UPDATE bus_head SET epoch = :epoch"


class Backup(Record):
    """A copy that can be put back."""

    file: str
    size_bytes: int
    schema_version: int


class Restored(Record):
    """What a restore did."""

    database: str
    backup: Backup
    moved: tuple[str, ...] = ()  # where the earlier database is now


def default_file(home: Path, clock: Clock) -> Path:
    return home / FOLDER / f"wakeful-{_stamp(clock)}.db"


def create(address: str, database: Path, target: Path, progress: Progress) -> Backup:
    """Copy the database to a new file that only its owner can read."""
    _refuse_postgres(address, "pg_dump")
    if not database.exists():
        raise StoreRefused(f"there is no database at {database}; `wakeful up` creates one")
    if not target.parent.exists():
        target.parent.mkdir(parents=True, mode=0o700)
        target.parent.chmod(0o700)  # mkdir's mode is cut by the umask
    copy = copy_out(database, target, progress)
    return Backup(file=str(target), size_bytes=copy.size_bytes, schema_version=copy.schema_version)


def verify(file: Path) -> Backup:
    """Check a backup whole; raise with what is wrong."""
    copy = inspected(file)
    return Backup(file=str(file), size_bytes=copy.size_bytes, schema_version=copy.schema_version)


def restore(
    address: str, file: Path, database: Path, clock: Clock, progress: Progress, *, force: bool
) -> Restored:
    """Put a backup in place of the database; never over one, unless forced, then beside it."""
    _refuse_postgres(address, "pg_restore")
    backup = verify(file)
    moved = put_back(
        file,
        database,
        aside=f"before-{_stamp(clock)}" if force else None,
        changes={_NEW_EPOCH: {"epoch": Ids(clock).new("ep")}},
        progress=progress,
    )
    return Restored(database=str(database), backup=backup, moved=tuple(map(str, moved)))


def _stamp(clock: Clock) -> str:
    moment = datetime.fromtimestamp(clock.now() / 1000, UTC)
    return moment.strftime("%Y%m%dT%H%M%S") + f"{clock.now() % 1000:03d}Z"


def _refuse_postgres(address: str, tool: str) -> None:
    if is_postgres(address):
        raise StoreRefused(f"the database is PostgreSQL: use {tool}")
