"""Ledgers of the test itself: append-only lines on disk, written outside the runtime's own store.

Whoever takes part in a fault test (load client, stand-in model, tools, receiver, watchers, fault
injector, each life of the process) writes down what it saw in a ledger of its own. The checker
compares these with the database.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from wakeful.vocabulary.clock import Clock, SystemClock

Line = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Ledger:
    """One append-only file; a line is on disk when `note` returns.

    `is_synced=False` leaves the sync to the kernel, which keeps what a killed process wrote; only
    a power cut would lose it.
    """

    def __init__(
        self, path: Path, *, life: str = "", is_synced: bool = True, clock: Clock | None = None
    ) -> None:
        self.path = path
        self._life = life
        self._is_synced = is_synced
        self._clock = clock or SystemClock()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        if _is_cut(self._file):
            os.write(self._file, b"\n")  # a kill cut the last line: it must not swallow the next

    def note(self, what: str, /, **fields: object) -> None:
        """Write one line: what happened, when (wall and monotonic), and whatever describes it."""
        head: Mapping[str, object] = {
            "what": what,
            "at": self._clock.now(),
            "t": self._clock.monotonic(),
            "life": self._life,
        }
        os.write(self._file, _encode({**head, **fields}) + b"\n")
        if self._is_synced:
            os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> list[Line]:
    """Return the lines of a ledger; a line that a kill cut short is left out."""
    if not path.exists():
        return []
    lines: list[Line] = []
    for raw in path.read_bytes().split(b"\n"):
        if not raw:
            continue
        try:
            lines.append(_decode(raw))
        except msgspec.DecodeError:
            continue
    return lines


def _is_cut(file: int) -> bool:
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"
