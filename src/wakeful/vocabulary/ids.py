"""Identifiers: unique, sortable by time, opaque to everybody else."""

import os
import random
from typing import NewType

from wakeful.vocabulary.clock import Clock

StimulusId = NewType("StimulusId", str)
TurnId = NewType("TurnId", str)
EntryId = NewType("EntryId", str)
AgentId = NewType("AgentId", str)

_COUNTER_LIMIT = 0x10000


class Ids:
    """Makes identifiers: milliseconds, a counter within the millisecond, chance.

    One thread at a time: the writer's, inside transactions, once the runtime has started.
    """

    def __init__(self, clock: Clock, chance: random.Random | None = None) -> None:
        self._clock = clock
        self._chance = _Chance() if chance is None else chance
        self._last_ms = 0
        self._count = 0

    def new(self, prefix: str) -> str:
        """Return an identifier that sorts after every earlier one of this process."""
        ms = max(self._clock.now(), self._last_ms)
        self._count = self._count + 1 if ms == self._last_ms else 0
        if self._count == _COUNTER_LIMIT:
            ms, self._count = ms + 1, 0
        self._last_ms = ms
        return f"{prefix}_{ms:012x}{self._count:04x}{self._chance.getrandbits(48):012x}"

    def follow(self, identifier: str) -> None:
        """Let every identifier from now on sort after one of an earlier process, too."""
        ms = int(identifier.rpartition("_")[2][:12], 16)
        if ms >= self._last_ms:
            self._last_ms, self._count = ms, _COUNTER_LIMIT - 1

    def stimulus(self) -> StimulusId:
        return StimulusId(self.new("st"))

    def turn(self) -> TurnId:
        return TurnId(self.new("tn"))

    def entry(self) -> EntryId:
        return EntryId(self.new("en"))


class _Chance:
    """The system's randomness, fetched in larger pieces: ids must not be guessed from others."""

    def __init__(self) -> None:
        self._pool = b""
        self._used = 0

    def getrandbits(self, bits: int) -> int:
        size = (bits + 7) // 8
        if self._used + size > len(self._pool):
            self._pool, self._used = os.urandom(4096), 0
        self._used += size
        return int.from_bytes(self._pool[self._used - size : self._used], "big") >> -bits % 8
