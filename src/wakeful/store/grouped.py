"""The store that both databases share: group commit over a back end."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from wakeful.store.backend import Backend
from wakeful.store.database import In, Lock, Out, Row, Tx, Verb
from wakeful.store.full_text import FullText
from wakeful.store.group import GroupOutcome, WriteCall
from wakeful.store.readers import Reader, Readers
from wakeful.store.urgency import Urgency
from wakeful.store.writer import ReadCall, WriteOutcome, Writer
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Overloaded, StoreDamaged, StoreFailed, StoreRefused

T = TypeVar("T")

YIELDING_ROWS = 40


class GroupedStore:
    """A `Store`; without readers of its own it reads on the writer thread, between groups."""

    def __init__(
        self,
        open_backend: Callable[[], Backend],
        *,
        clock: Clock,
        open_reader: Callable[[], Reader] | None,
        full_text: FullText,
        yielding_rows: int = YIELDING_ROWS,
    ) -> None:
        self.full_text = full_text
        self.yielding_rows = yielding_rows
        self._loop = asyncio.get_running_loop()
        self._failed = asyncio.Event()
        self._urgency = Urgency(self._loop)
        self._writer = Writer(
            open_backend, clock, self._deliver, self._failed.set, yielding_rows=yielding_rows
        )
        self._readers = None if open_reader is None else Readers(open_reader)
        self._listeners: dict[str, dict[object, Callable[[str], object]]] = {}

    async def start(self) -> None:
        await self._writer.start()

    async def transact(
        self, fn: Callable[[Tx], T], *, locks: Iterable[Lock] = (), yields: bool = False
    ) -> T:
        outcome = WriteOutcome(loop=self._loop)
        self._writer.put(WriteCall(outcome, fn, locks=tuple(locks)), yields=yields)
        self._urgency.asked()
        return await outcome.known()

    async def batch(self, verb: Verb[In, Out], row: In) -> Out:
        outcome = WriteOutcome(loop=self._loop)
        self._writer.put(WriteCall(outcome, None, verb, row), yields=verb.yields)
        self._urgency.asked()
        return await outcome.known()

    async def batch_all(self, verb: Verb[In, Out], rows: Iterable[In]) -> list[Out | Exception]:
        outcomes = [self._queued(verb, row) for row in rows]
        results: list[Out | Exception] = []
        cancelled: asyncio.CancelledError | None = None
        for outcome in outcomes:
            try:
                results.append(await outcome.known())
            except asyncio.CancelledError as error:  # the others are under way all the same
                cancelled = error
            except Exception as error:
                results.append(error)
        if cancelled is not None:
            raise cancelled
        return results

    def _queued(self, verb: Verb[In, Out], row: In) -> WriteOutcome:
        """Queue a row; a refusal to do so is its outcome."""
        outcome = WriteOutcome(loop=self._loop)
        try:
            self._writer.put(WriteCall(outcome, None, verb, row), yields=verb.yields)
        except (Overloaded, StoreRefused) as error:
            outcome.set_exception(error)
        else:
            self._urgency.asked()
        return outcome

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        if self._readers is None:
            outcome = WriteOutcome(loop=self._loop)
            self._writer.put(ReadCall(outcome, sql, params))
            return await outcome.known()
        try:
            return await self._readers.read(sql, params)
        except (StoreFailed, StoreDamaged) as error:
            self._writer.notice(error)
            raise

    def listen(self, channel: str, act: Callable[[str], object]) -> Callable[[], None]:
        listeners = self._listeners.setdefault(channel, {})
        token = object()
        listeners[token] = act

        def undo() -> None:
            listeners.pop(token, None)

        return undo

    async def wait_failed(self) -> None:
        await self._failed.wait()

    async def close(self) -> None:
        if self._readers is not None:
            await self._readers.close()
        await self._writer.close()
        self._urgency.end()

    def _deliver(self, settled: GroupOutcome) -> None:
        self._urgency.answered(len(settled.results) + len(settled.errors))
        for act in settled.acts:
            self._call(act)
        for channel, key in settled.notes:
            for listener in tuple(self._listeners.get(channel, {}).values()):
                self._call(listener, key)
        for call, result in settled.results:
            call.future.set_result(result)
        for call, error in settled.errors:
            if not call.future.done():
                call.future.set_exception(_raisable(error))

    def _call(self, act: Callable[..., object], *args: object) -> None:
        try:
            act(*args)
        except Exception as error:
            # The commit happened; what follows it must reach everybody else all the same.
            self._loop.call_exception_handler(
                {"message": f"{act!r} raised after a commit", "exception": error}
            )


def _raisable(error: BaseException) -> BaseException:
    # A future cannot carry StopIteration: it would end the coroutine that awaits it.
    if isinstance(error, StopIteration):
        return RuntimeError("a write function raised StopIteration")
    return error
