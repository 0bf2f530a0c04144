"""The tasks of a runtime's services: started together, and one by one when settings change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

Tasks = frozenset["asyncio.Task[None]"]
Act = Callable[[], Awaitable[object]]

log = logging.getLogger(__name__)


class LoopTasks:
    """What runs in the group of one runtime, by name."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._named: dict[str, asyncio.Task[None]] = {}
        self._more: set[asyncio.Task[None]] = set()  # that end by themselves

    def start(self, name: str, loop: Coroutine[Any, Any, None]) -> None:
        self._named[name] = self._group.create_task(loop, name=name)

    def retire(self, name: str, under_way: Tasks) -> None:
        """End a loop once everything that is under way is over."""
        old = self._named.pop(name, None)
        if old is not None:
            self._more.add(old)
            self.after(under_way, partial(_cancel, old))

    def after(self, under_way: Tasks, act: Act) -> None:
        """Do something once everything that is under way is over."""
        task = self._group.create_task(_after(under_way, act), name=f"after {len(under_way)} lanes")
        self._more.add(task)
        task.add_done_callback(self._more.discard)

    def cancel(self) -> None:
        """End everything at once."""
        for task in (*self._named.values(), *self._more):
            task.cancel()


async def _after(under_way: Tasks, act: Act) -> None:
    try:
        if under_way:
            await asyncio.wait(under_way)
        await act()
    except Exception:  # it is only tidying up
        log.warning("something of the earlier settings could not be closed", exc_info=True)


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
