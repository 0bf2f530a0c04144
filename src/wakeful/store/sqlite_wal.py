"""Damage in the middle of SQLite's write-ahead log.

SQLite reads the log up to the first frame that does not check and takes the rest for a torn
tail. That is right for the last transaction, which nobody was told about; but if a frame behind
it was written on top of a finished transaction, that one had been synced and acknowledged.
https://www.sqlite.org/fileformat2.html#walformat
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = (0x377F0682, 0x377F0683)  # the last bit: words are checked as big-endian


@dataclass(frozen=True)
class _Frame:
    is_commit: bool
    salts: bytes
    checksum: tuple[int, int]
    checked: bytes  # the part of its header, and the page, that the checksum covers


def lost_transactions(wal: Path, valid_frames: int, page_bytes: int) -> bool:
    """Return whether acknowledged transactions lie behind the frames that SQLite can read."""
    content = wal.read_bytes()
    if len(content) < HEADER_BYTES:
        return False
    magic, _, _, _, _, _, *stored = struct.unpack(">8I", content[:HEADER_BYTES])
    order = ">" if magic & 1 else "<"
    frames = _frames(content, valid_frames, page_bytes)
    if magic not in _MAGIC or _checksum((0, 0), content[:24], order) != tuple(stored):
        # The header is synced before the first frame, so frames under a broken one are lost.
        return any(_follows(a, b, o) for a, b in pairwise(frames) for o in "<>")
    salts = content[16:24]
    return any(
        a.is_commit and a.salts == b.salts == salts and _follows(a, b, order)
        for a, b in pairwise(frames)
    )


def _frames(content: bytes, first: int, page_bytes: int) -> list[_Frame]:
    size = FRAME_HEADER_BYTES + page_bytes
    frames: list[_Frame] = []
    for start in range(HEADER_BYTES + first * size, len(content) - size + 1, size):
        _, pages_after_commit, _, _, *checksum = struct.unpack(">6I", content[start : start + 24])
        frames.append(
            _Frame(
                is_commit=pages_after_commit != 0,
                salts=content[start + 8 : start + 16],
                checksum=(checksum[0], checksum[1]),
                checked=content[start : start + 8] + content[start + 24 : start + size],
            )
        )
    return frames


def _follows(before: _Frame, frame: _Frame, order: str) -> bool:
    """Return whether `frame` is whole and was written after `before` was."""
    if before.salts != frame.salts:
        return False
    return _checksum(before.checksum, frame.checked, order) == frame.checksum


def _checksum(seed: tuple[int, int], content: bytes, order: str) -> tuple[int, int]:
    first, second = seed
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
