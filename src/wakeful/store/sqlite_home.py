"""The files around a SQLite database: who may use them, and whether one is missing.

Beside `NAME` lie `NAME-wal` and `NAME-shm` (SQLite's), `NAME.lock` (held by the process that
has the database) and `NAME.marker` (a database was made here, and whether it was closed).
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from wakeful.vocabulary.errors import StoreDamaged, StoreFailed, StoreFull, StoreRefused

LOCK_PATIENCE_S = 1.0  # a command that reads holds the lock for moments only
PAUSE_S = 0.02

_OPEN, _CLOSED = b"open  \n", b"closed\n"
_EXPLANATION = b"A wakeful database was made beside this file. Delete neither without the other.\n"


class Home:
    """An exclusive claim to the database at `path`, for the life of a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wal = beside(path, "-wal")
        self._marker = beside(path, ".marker")
        with file_errors(path):
            _make_folder(path.parent)
            self._lock = _locked(path)

    def has_database(self) -> bool:
        """Return whether there is one; raise if there was one that is gone or cut off."""
        if self.path.exists():
            if self.path.stat().st_size == 0:
                raise StoreDamaged(f"{self.path} is empty: restore it from a backup")
            if self._marked() == _OPEN and not self.wal.exists():
                raise StoreDamaged(
                    f"{self.wal} is missing and {self.path} is incomplete without it: put it "
                    f"back, or restore a backup and delete {self._marker}"
                )
            return True
        remains = [file for file in (self.wal, self._marker) if has_content(file)]
        if remains:
            raise StoreDamaged(
                f"{self.path} is gone, but {remains[0]} shows that it was there: restore it from "
                f"a backup, or delete {' and '.join(map(str, remains))} to start empty"
            )
        return False

    def create(self, build: Callable[[Path], None]) -> None:
        """Build a new database aside and put it in place whole, or not at all."""
        with file_errors(self.path):
            draft = beside(self.path, ".new")
            for leftover in self.path.parent.glob(f"{draft.name}*"):
                leftover.unlink()
            create_private(draft)
            build(draft)
            sync(draft)
            draft.rename(self.path)
            sync(self.path.parent)

    def mark_open(self) -> None:
        """Note that the write-ahead log is needed from now on; it must exist."""
        with file_errors(self.path):
            sync(self.path.parent)
            if not self._marker.exists():
                create_private(self._marker)
            self._mark(_OPEN)

    def mark_closed(self) -> None:
        """Note that the database is complete without its log."""
        with file_errors(self.path):
            self._mark(_CLOSED)

    def leave(self) -> None:
        os.close(self._lock)

    def _marked(self) -> bytes:
        return self._marker.read_bytes()[: len(_OPEN)] if self._marker.exists() else b""

    def _mark(self, state: bytes) -> None:
        # Written in place and within one sector, so that a full disk or a crash cannot cut it.
        descriptor = os.open(self._marker, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, state + _EXPLANATION, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def file_errors(path: Path) -> Generator[None, None, None]:
    """Say what an error of the file system means for the database at `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(retry_after_s=5.0) from error
        if error.errno == errno.EIO:
            raise StoreFailed(f"the disk failed: {error}") from error
        raise StoreRefused(f"{path} cannot be used: {error}") from error


@contextmanager
def kept_closed(path: Path) -> Generator[bool, None, None]:
    """Keep stores from opening the database meanwhile; yields False if one has it open."""
    try:
        descriptor = os.open(beside(path, ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _is_shared(descriptor)
    finally:
        os.close(descriptor)


def beside(path: Path, suffix: str) -> Path:
    """Return the file that belongs to the database at `path`."""
    return path.with_name(path.name + suffix)


def has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def create_private(file: Path) -> None:
    """Create an empty file that only its owner may use, whatever the umask says."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # mkdir's mode is cut by the umask


def _is_shared(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: Path) -> int:
    descriptor = os.open(beside(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise StoreRefused(f"{path} is in use by process {holder}; stop it first") from None
        time.sleep(PAUSE_S)
    os.fchmod(descriptor, 0o600)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
