"""A disk that fails when it is told to, below SQLite."""

import itertools
from collections.abc import Callable
from typing import Any

import apsw

_numbers = itertools.count()


class FaultyDisk(apsw.VFS):
    """SQLite's own way to the disk, until a fault is set; `name` is what a store is given."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_numbers)}"
        self.on_sync: Callable[[str], None] = _fine
        self.on_write: Callable[[str], None] = _fine
        self.syncs = 0
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self, name, flags)

    def repair(self) -> None:
        self.on_sync = self.on_write = _fine


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._name = str(name.filename() if isinstance(name, apsw.URIFilename) else name)

    def xSync(self, flags: int) -> None:
        self._disk.syncs += 1
        self._disk.on_sync(self._name)
        super().xSync(flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.on_write(self._name)
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType]


def io_error(code: int) -> apsw.Error:
    error = apsw.IOError("disk I/O error")
    error.extendedresult = code  # pyright: ignore[reportAttributeAccessIssue]
    return error


def failing_sync(name: str) -> None:
    raise io_error(apsw.SQLITE_IOERR_FSYNC)


def failing_write(name: str) -> None:
    raise io_error(apsw.SQLITE_IOERR_WRITE)


def full(name: str) -> None:
    raise apsw.FullError("database or disk is full")


def full_for(suffix: str) -> Callable[[str], None]:
    def act(name: str) -> None:
        if name.endswith(suffix):
            full(name)

    return act


def _fine(name: str) -> None:
    pass
