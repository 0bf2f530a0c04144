"""A disk that forgets at a power cut whatever was not synced; also the rig on such a disk.

Writes go through, so the process notices nothing. Beside them a durable copy of each file is kept
that changes only when the file is synced: after a kill it is what a power cut would have left.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import apsw

from tests.proofs import rig

VARIABLE = "WAKEFUL_DURABLE"
FILES = ("wakeful.db", "wakeful.db-wal")


class LossyDisk(apsw.VFS):
    """SQLite's own way to the disk, with a durable copy beside it."""

    def __init__(self, durable: Path) -> None:
        self._durable = durable
        super().__init__("lossy", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = Path(str(name.filename() if isinstance(name, apsw.URIFilename) else name))
        if path.name not in FILES:
            return super().xOpen(name, flags)
        copy = self._durable / path.name
        if not copy.exists():
            # Its folder entry is synced by the store; what it holds already was synced before.
            copy.write_bytes(path.read_bytes() if path.exists() else b"")
        return _File(name, flags, copy)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        (self._durable / Path(filename).name).unlink(missing_ok=True)


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], copy: Path) -> None:
        super().__init__("unix", name, flags)
        self._copy = os.open(copy, os.O_RDWR | os.O_CREAT)
        self._pending: list[tuple[int, bytes | None]] = []  # offset and bytes; None: cut there

    def xWrite(self, data: Any, offset: int) -> None:
        self._pending.append((offset, bytes(data)))
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType]

    def xTruncate(self, newsize: int) -> None:
        self._pending.append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        pending, self._pending = self._pending, []
        for offset, data in pending:
            if data is None:
                os.ftruncate(self._copy, offset)
            else:
                os.pwrite(self._copy, data, offset)

    def xClose(self) -> None:
        os.close(self._copy)
        super().xClose()


def cut_power(home: Path, durable: Path) -> None:
    """Leave of a killed process's database only what was synced."""
    for name in FILES:
        (home / name).unlink(missing_ok=True)
        (home / f"{name}-shm").unlink(missing_ok=True)
        if (durable / name).exists():
            shutil.copy(durable / name, home / name)
    (home / "wakeful.db-shm").unlink(missing_ok=True)


def main() -> None:
    disk = LossyDisk(Path(os.environ[VARIABLE]))
    rig.main()
    disk.unregister()


if __name__ == "__main__":
    main()
