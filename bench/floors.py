"""Floors: what this machine does in the same minute without the runtime."""

import asyncio
import os
import queue
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw

PAGE = bytes(4096)
ROW = "x" * 400  # about the size of a stimulus with its event
COMMITS_PER_TURN = 3


class Disk:
    """A file that is written a page at a time, each page synced."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "floor.bin", os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def syncs(self, count: int) -> list[float]:
        """Return how many seconds each of `count` synced writes took."""
        taken: list[float] = []
        for page in range(count):
            started = time.perf_counter()
            os.pwrite(self._file, PAGE, page * len(PAGE))
            os.fdatasync(self._file)
            taken.append(time.perf_counter() - started)
        return taken


class PlainCommits:
    """The same SQLite with the same promises, one small row per commit, nobody else around."""

    def __init__(self, folder: Path) -> None:
        self._connection = apsw.Connection(str(folder / "floor.db"))
        self._cursor: Any = self._connection.cursor()  # its types are not all known
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self._execute(f"PRAGMA {pragma}")
        self._execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, text TEXT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def commits(self, count: int) -> list[float]:
        """Return how many seconds each of `count` commits took."""
        taken: list[float] = []
        for _ in range(count):
            started = time.perf_counter()
            self._execute("BEGIN IMMEDIATE")
            self._execute("INSERT INTO rows (text) VALUES (:text)", {"text": ROW})
            self._execute("COMMIT")
            taken.append(time.perf_counter() - started)
        return taken

    def rate(self, count: int) -> float:
        """Return commits per second."""
        return count / sum(self.commits(count))

    def _execute(self, sql: str, params: dict[str, Any] | None = None) -> None:
        self._cursor.execute(sql, params)


class BareLoop:
    """Tasks that hand futures to a thread and back as turns do, with nothing written."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[asyncio.Future[None] | None] = queue.SimpleQueue()

    async def turns(self, sessions: int, turns_each: int) -> None:
        """Make the hand-overs and awaits of that many turns."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._answer, args=(loop,))
        thread.start()
        async with asyncio.TaskGroup() as group:
            for _ in range(sessions):
                group.create_task(self._session(loop, turns_each))
        self._queue.put(None)
        thread.join()

    async def _session(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        for _ in range(turns):
            for _ in range(COMMITS_PER_TURN):
                future: asyncio.Future[None] = loop.create_future()
                self._queue.put(future)
                await future
                await asyncio.sleep(0)

    def _answer(self, loop: asyncio.AbstractEventLoop) -> None:
        while (future := self._queue.get()) is not None:
            loop.call_soon_threadsafe(future.set_result, None)
