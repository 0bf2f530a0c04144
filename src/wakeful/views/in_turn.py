"""Reads that may take seconds, in turn: most readers are left to everybody else."""

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from wakeful.store.database import Row, Store

AT_ONCE = 2  # of the threads that read for everybody


class InTurn:
    """Lets each viewer read one thing after the other, and all of them two things at once.

    So whoever asks often waits for themselves, and keeps nobody from looking.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = asyncio.Semaphore(AT_ONCE)
        self._of_viewers: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, viewer: str, sql: str, **params: object) -> Sequence[Row]:
        own = self._of_viewers.setdefault(viewer, asyncio.Lock())
        async with own, self._reading:
            return await self._store.read(sql, **params)
