"""The files around a SQLite database: who may use them, and whether one is missing.

Beside `NAME` lie `NAME-wal` and `NAME-shm` (SQLite's), `NAME.lock` (held by the process that
has the database) and `NAME.marker` (a database was made here, whether it was closed, and how many
commits it must hold: another program that closes it last copies the log back and takes it away).
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from wakeful.vocabulary.errors import StoreDamaged, StoreFailed, StoreFull, StoreRefused

LOCK_PATIENCE_S = 1.0  # a command that reads holds the lock for moments only
PAUSE_S = 0.02

_OPEN, _CLOSED = b"open  \n", b"closed\n"
_EXPLANATION = b"A wakeful database was made beside this file. Delete neither without the other.\n"
_COUNT_AT = len(_OPEN) + len(_EXPLANATION)
_COUNT_DIGITS = 10
_USER_VERSION = slice(60, 64)  # of a database's header: https://www.sqlite.org/fileformat2.html
_LOG_HEADER, _FRAME_HEADER = 32, 24  # bytes before all pages of a log, and before each of them

COUNTED = 2**31  # commits are counted modulo this, in SQLite's `user_version`


class Home:
    """An exclusive claim to the database at `path`, for the life of a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wal = beside(path, "-wal")
        self._marker = beside(path, ".marker")
        self._noting: int | None = None
        with file_errors(path):
            _make_folder(path.parent)
            self._lock = _locked(path)

    def has_database(self) -> bool:
        """Return whether there is one; raise if there was one that is gone or cut off."""
        if self.path.exists():
            if self.path.stat().st_size == 0:
                raise StoreDamaged(f"{self.path} is empty: restore it from a backup")
            is_open = self._marked() == _OPEN
            if is_open and not self.wal.exists() and not self._holds_every_commit():
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

    def mark_open(self, commits: int = 0) -> None:
        """Note that the write-ahead log is needed from now on; it must exist."""
        with file_errors(self.path):
            sync(self.path.parent)
            if not self._marker.exists():
                create_private(self._marker)
            self._mark(_OPEN + _EXPLANATION + _count(commits))
            self._noting = os.open(self._marker, os.O_WRONLY | os.O_CLOEXEC)

    def note_commits(self, commits: int) -> None:
        """Note how many commits there are, for whoever finds the database without its log.

        It outlives this process, not the machine: what a power cut forgets is a smaller number,
        and the disk is not waited for twice.
        """
        if self._noting is not None:
            with suppress(OSError):
                os.pwrite(self._noting, _count(commits), _COUNT_AT)

    def end_log_after(self, pages: int) -> None:
        """Make sure that the log ends after so many pages, whatever else was written to it.

        It is cut off, which needs no room: the next commit would write over it.
        """
        with self.wal.open("r+b") as log:
            header = log.read(_LOG_HEADER)
            page_bytes = int.from_bytes(header[8:12], "big")
            behind = _LOG_HEADER + pages * (_FRAME_HEADER + page_bytes)
            if os.fstat(log.fileno()).st_size > behind:
                log.truncate(behind)
                os.fsync(log.fileno())

    def mark_closed(self) -> None:
        """Note that the database is complete without its log."""
        with file_errors(self.path):
            self._mark(_CLOSED + _EXPLANATION)

    def leave(self) -> None:
        if self._noting is not None:
            os.close(self._noting)
        os.close(self._lock)

    def _holds_every_commit(self) -> bool:
        """Tell whether the file alone holds what was noted, so that nothing was lost with a log."""
        noted = self._marker.read_bytes()[_COUNT_AT:][:_COUNT_DIGITS]
        if not (len(noted) == _COUNT_DIGITS and noted.isdigit()):
            return False
        with self.path.open("rb") as file:
            held = int.from_bytes(file.read(_USER_VERSION.stop)[_USER_VERSION], "big")
        # It may be one ahead: a process may die between its commit and its note.
        return (held - int(noted)) % COUNTED < COUNTED // 2

    def _marked(self) -> bytes:
        return self._marker.read_bytes()[: len(_OPEN)] if self._marker.exists() else b""

    def _mark(self, state: bytes) -> None:
        # Written in place and within one sector, so that a full disk or a crash cannot cut it.
        descriptor = os.open(self._marker, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, state, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _count(commits: int) -> bytes:
    return f"{commits:0{_COUNT_DIGITS}}\n".encode()


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
