"""Readers: a few threads that run single SELECTs off the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from wakeful.store.database import Row
from wakeful.store.urgency import Urgency
from wakeful.vocabulary.errors import Overloaded, StoreRefused

READERS = 4
WAITING_LIMIT = 10_000  # reads that wait for a thread; beyond it callers are refused

_Job = tuple[asyncio.Future[Any], str, Mapping[str, object]]


class Reader(Protocol):
    """A connection that only reads, used on one thread."""

    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]: ...

    def close(self) -> None: ...


class Readers:
    """A pool of reading threads; each opens its connection when it is first needed."""

    def __init__(self, open_reader: Callable[[], Reader], count: int = READERS) -> None:
        self._open_reader = open_reader
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0
        self._urgency = Urgency(self._loop)
        self._is_closed = False

    async def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        if self._is_closed:
            raise StoreRefused("the store is closed")
        if self._unfinished >= WAITING_LIMIT:
            raise Overloaded(f"{WAITING_LIMIT} reads are waiting", retry_after_s=1.0)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._unfinished += 1
        if self._unfinished > len(self._threads) < self._count:
            self._start_thread()
        self._jobs.put((future, sql, params))
        self._urgency.asked()
        return await future

    async def close(self) -> None:
        """Let the reads under way finish and end the threads."""
        self._is_closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._urgency.end()

    def _start_thread(self) -> None:
        name = f"wakeful-reader-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        reader: Reader | None = None
        while (job := self._jobs.get()) is not None:
            future, sql, params = job
            if future.cancelled():
                self._tell(future, None, None)
                continue
            try:
                reader = reader or self._open_reader()
                self._tell(future, reader.read(sql, params), None)
            except BaseException as error:  # it belongs to whoever asked
                self._tell(future, None, error)
        if reader is not None:
            reader.close()

    def _tell(self, future: asyncio.Future[Any], rows: object, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._finish, future, rows, error)
        except RuntimeError:  # the event loop is closed: nobody is left to be told
            return

    def _finish(
        self, future: asyncio.Future[Any], rows: object, error: BaseException | None
    ) -> None:
        self._unfinished -= 1
        self._urgency.answered()
        if future.done():
            return
        if error is None:
            future.set_result(rows)
        else:
            future.set_exception(error)
