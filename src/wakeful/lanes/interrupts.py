"""Interrupts: carry a committed interrupt to the task that it ends."""

import asyncio
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

REMEMBERED = 1024  # interrupts that came before their task was watching


class Interrupts:
    """Cancels the task of an interrupted turn; the interrupt itself is in the ledger."""

    def __init__(self) -> None:
        self._watched: dict[str, asyncio.Timeout] = {}
        self._early: OrderedDict[str, None] = OrderedDict()

    def raise_on(self, turn_id: str) -> None:
        """End a turn's task at its next await; if it has none yet, as soon as it has."""
        scope = self._watched.get(turn_id)
        if scope is not None:
            _expire(scope)
            return
        self._early[turn_id] = None
        while len(self._early) > REMEMBERED:
            self._early.popitem(last=False)

    @contextmanager
    def watching(self, turn_id: str, scope: asyncio.Timeout) -> Generator[None, None, None]:
        """Let interrupts of a turn expire a scope for as long as the block lasts."""
        self._watched[turn_id] = scope
        if turn_id in self._early:
            _expire(scope)
        try:
            yield
        finally:
            del self._watched[turn_id]
            self._early.pop(turn_id, None)


def _expire(scope: asyncio.Timeout) -> None:
    if not scope.expired():
        scope.reschedule(asyncio.get_running_loop().time())
