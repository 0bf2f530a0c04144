"""The files around a SQLite database: who may open them, and who does."""

import fcntl
import os
from pathlib import Path

from wakeful.vocabulary.errors import StoreRefused


class Home:
    """An exclusive claim to the database at `path`, for the life of a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _make_folder(path.parent)
        self._lock = _locked(path.with_name(path.name + ".lock"), path)
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    def leave(self) -> None:
        os.close(self._lock)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)


def _locked(lock: Path, path: Path) -> int:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreRefused(f"{path} is in use by process {holder}; stop it first") from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
