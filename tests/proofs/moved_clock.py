"""A wall clock that a test moves while the process under test runs, as an operator or NTP would."""

import mmap
import os
import struct
from pathlib import Path

from wakeful.vocabulary.clock import SystemClock

FILE = "clock"  # beside the ledgers: how far the clock of the process was moved

_OFFSET = struct.Struct("<q")  # milliseconds


class MovedClock(SystemClock):
    """The machine's clock plus an offset in a file, which whoever has the file may change."""

    def __init__(self, path: Path) -> None:
        file = _opened(path)
        try:
            self._offset = mmap.mmap(file, _OFFSET.size, prot=mmap.PROT_READ)
        finally:
            os.close(file)

    def now(self) -> int:
        return super().now() + _OFFSET.unpack_from(self._offset)[0]


def move(path: Path, to_ms: int) -> None:
    """Put the wall clock of every process that reads this file so far ahead, or behind."""
    file = _opened(path)
    try:
        os.pwrite(file, _OFFSET.pack(to_ms), 0)
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.fstat(file).st_size == 0:
        os.ftruncate(file, _OFFSET.size)
    return file
