"""Run code that is not ours in a task of its own, which ends when it is told to.

Whoever swallows a cancellation would otherwise keep everybody who waits for it: the turn, its lane,
the process.
"""

import asyncio
import logging
from collections.abc import Coroutine, Generator
from types import coroutine as generator_based
from typing import Any, Generic, TypeVar

from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Transient

GRACE_S = 2.0  # after a cancellation, to tidy up; a command that does not end is killed after one

T = TypeVar("T")

log = logging.getLogger(__name__)


class Apart(Generic[T]):
    """One call; `result` is awaited once, and nothing of it goes on after that.

    `owner` is the task for whose sake it is made, if that is another one than the task that waits:
    nothing begins once it was told to end. With `keeps_own_limits`, a call that was told to end by
    a time-out of its own, and goes on all the same, is abandoned as well.
    """

    def __init__(
        self,
        call: Coroutine[Any, Any, T],
        *,
        name: str,
        clock: Clock,
        owner: asyncio.Task[Any] | None = None,
        keeps_own_limits: bool = False,
    ) -> None:
        self._call = call
        self._name = name
        self._clock = clock
        self._owner = owner
        self._keeps_own_limits = keeps_own_limits
        self._is_let_go = False
        self._error: BaseException | None = None
        self.is_abandoned = False
        self.value: T | None = None  # also of a call that returned after its cancellation

    async def result(self) -> T:
        """Return what the call returns, or raise what it raises.

        Cancellation is passed on. A call that goes on all the same is abandoned after a grace: it
        stays where it is, for ever.
        """
        waiting = asyncio.current_task()
        owners = [task for task in (waiting, self._owner) if task is not None]
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(self._run(owners), name=self._name)
                try:
                    await asyncio.wait((task,))
                except asyncio.CancelledError:
                    alarm = self._clock.call_later(GRACE_S, lambda: self._let_go(task))
                    task.add_done_callback(lambda _: alarm.cancel())
                    raise
        finally:
            if not self.is_abandoned:
                self._call.close()  # it may not have begun
        if self._error is not None:
            raise self._error
        return self.value  # pyright: ignore[reportReturnType]

    def _look_after(self, task: asyncio.Task[Any]) -> None:
        """Let go of the task if it was told to end by its own time-out, and has not heard of it.

        Whoever leaves the scope of a time-out takes its request to end back.
        """

        def look() -> None:
            if not task.done() and task.cancelling():
                self._error = Transient(f"{self._name} did not end when its time was over")
                self._let_go(task)

        alarm = self._clock.call_later(GRACE_S, look)
        task.add_done_callback(lambda _: alarm.cancel())

    def _let_go(self, task: asyncio.Task[None]) -> None:
        self._is_let_go = True
        task.cancel()

    async def _run(self, owners: list[asyncio.Task[Any]]) -> None:
        # A new task begins one cycle later: a stop may have been acknowledged in between.
        if any(owner.cancelling() for owner in owners):
            self._error = asyncio.CancelledError()
            return
        try:
            self.value = await self._driven()
        except (Exception, asyncio.CancelledError) as error:
            self._error = self._error or error
            if self._is_let_go:
                self._abandon()

    @generator_based
    def _driven(self) -> Generator[Any, Any, T]:
        """Drive the call as the event loop would, until it is let go of."""
        error: BaseException | None = None
        while True:
            try:
                awaited = self._call.send(None) if error is None else self._call.throw(error)
            except StopIteration as returned:
                return returned.value
            try:
                yield awaited
                error = None
            except BaseException as thrown:
                if self._is_let_go:
                    raise
                error = thrown
                task = asyncio.current_task()
                if self._keeps_own_limits and task is not None:
                    self._look_after(task)

    def _abandon(self) -> None:
        self.is_abandoned = True
        log.warning("%s did not end when it was told to: it is abandoned", self._name)
        call = self._call
        # Nothing may hold it any more: swept up after the event loop is gone, it might spin.
        del self._call
        try:
            call.close()
        except BaseException as error:
            log.info("%s could not be closed either: %r", self._name, error)
