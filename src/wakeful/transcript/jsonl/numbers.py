"""Which line of a file has which name: a table of a few bytes per line."""

import hashlib
from array import array

_SMALLEST = 1 << 12


class Numbers:
    """Names and the numbers of their lines; a dictionary would take fifteen times the memory.

    A name is kept as 64 bits of its hash: of a million lines two are taken for one once in
    thirty million files.
    """

    def __init__(self) -> None:
        self._count = 0
        self._resize(_SMALLEST)

    def __len__(self) -> int:
        return self._count

    def get(self, name: str) -> int | None:
        slot = self._slot(_key(name))
        return self._numbers[slot] if self._keys[slot] else None

    def add(self, name: str, number: int) -> bool:
        """Note a name; False if it was there already."""
        key = _key(name)
        slot = self._slot(key)
        if self._keys[slot]:
            return False
        self._keys[slot], self._numbers[slot] = key, number
        self._count += 1
        if self._count * 3 > len(self._keys) * 2:
            self._grow()
        return True

    def _slot(self, key: int) -> int:
        keys, slot = self._keys, key & self._mask
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & self._mask
        return slot

    def _grow(self) -> None:
        keys, numbers = self._keys, self._numbers
        self._resize(len(keys) * 2)
        for key, number in zip(keys, numbers, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._numbers[slot] = key, number

    def _resize(self, size: int) -> None:
        self._keys = array("Q", bytes(8 * size))
        self._numbers = array("I", bytes(4 * size))
        self._mask = size - 1


def _key(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1  # 0 is an empty slot
