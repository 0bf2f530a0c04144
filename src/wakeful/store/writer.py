"""The writer: one thread that turns many callers' writes into few commits.

It does not begin at the first call: while each round of the event loop brings more of them, they
gather. So whoever calls in the same moment shares a commit, and the event loop and the thread take
turns instead of struggling for the interpreter.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wakeful.store.backend import Backend
from wakeful.store.database import GROUP_LIMIT, YIELDING_FUNCTIONS, Row
from wakeful.store.group import GroupOutcome, WriteCall, rejected, settle
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Overloaded, StoreDamaged, StoreFailed, StoreRefused

WAITING_LIMIT = 100_000  # writes that wait for the writer; beyond it callers are refused
LONGEST_GATHERING_S = 0.01  # from the first call on
GOES_FIRST = 3  # groups of others in a row, before those that yield join one
FOLLOWER_S = 0.005  # what those that yield wait for somebody who was answered and writes again
IDLE_S = 1.0  # quiet time after which the database is tidied up


class WriteOutcome(asyncio.Future[Any]):
    """What a commit came to; cancelling whoever awaits it waits for it first.

    A task asks the future it awaits to cancel itself. This one declines, so the task stays
    suspended until the outcome is known and gets its CancelledError then.
    """

    def cancel(self, msg: Any | None = None) -> bool:
        return False

    async def known(self) -> Any:
        """Wait for the outcome, whatever happens meanwhile."""
        try:
            return await self
        except asyncio.CancelledError:
            if self.done():
                self.exception()  # seen, so that the loop does not report it as forgotten
            raise


class ReadCall:
    """A read that runs on the writer thread, between groups."""

    __slots__ = ("future", "params", "sql")

    def __init__(self, future: WriteOutcome, sql: str, params: Mapping[str, object]) -> None:
        self.future = future
        self.sql = sql
        self.params = params


class Writer:
    """Owns the writing connection and the thread it lives on."""

    def __init__(
        self,
        open_backend: Callable[[], Backend],
        clock: Clock,
        deliver: Callable[[GroupOutcome], None],
        fail: Callable[[], None],
        *,
        yielding_rows: int,
    ) -> None:
        self._yielding_rows = yielding_rows
        self._open_backend = open_backend
        self._clock = clock
        self._deliver = deliver
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._calls: deque[WriteCall | ReadCall] = deque()
        self._yielding: deque[WriteCall] = deque()  # of verbs that let others go first
        self._let_go = 0  # groups of others alone, one after the other, while these waited
        self._follower_until = 0.0  # somebody who was answered is about to write again
        self._is_gathering = False  # for the event loop alone
        self._is_due = False  # what gathered may be written; lowered by whoever writes it
        self._is_closing = False
        self._is_asleep = False
        self._wake = threading.Lock()  # held while there is nothing to wake the thread for
        self._wake.acquire()
        self._failure: StoreFailed | StoreDamaged | None = None
        self._opened = WriteOutcome(loop=self._loop)
        self._closed = WriteOutcome(loop=self._loop)
        self._thread = threading.Thread(target=self._run, name="wakeful-writer", daemon=True)

    async def start(self) -> None:
        """Open the database on the writer thread; raise what kept it from opening."""
        self._thread.start()
        try:
            await self._opened.known()
        except asyncio.CancelledError:
            await self.close()
            raise

    def put(self, call: WriteCall | ReadCall, *, yields: bool = False) -> None:
        """Queue a call; its future will tell the outcome."""
        if self._is_closing:
            raise StoreRefused("the store is closed")
        if self._waiting() >= WAITING_LIMIT:
            raise Overloaded(f"{WAITING_LIMIT} writes are waiting", retry_after_s=1.0)
        if yields and isinstance(call, WriteCall):
            self._yielding.append(call)
        else:
            self._calls.append(call)
        if not self._is_gathering and not self._is_due:
            self._is_gathering = True
            self._loop.call_soon(self._gather, 0, self._loop.time() + LONGEST_GATHERING_S)

    async def close(self) -> None:
        """Finish what was queued, then close the database."""
        if not self._is_closing:
            self._is_closing = True
            self._awaken()
        await self._closed.known()
        self._thread.join()

    def notice(self, error: BaseException) -> None:
        """Stop for good if this error, met by anybody, means that the disk cannot be trusted."""
        # After a failed sync the kernel may drop the dirty pages and report the next sync as
        # good, so the first failure is final whatever later calls say.
        if self._failure is None and isinstance(error, StoreFailed | StoreDamaged):
            self._failure = error
            self._tell(self._fail)

    def _waiting(self) -> int:
        return len(self._calls) + len(self._yielding)

    def _gather(self, seen: int, until: float) -> None:
        """Let the thread begin unless this round of the event loop brought more calls."""
        waiting = self._waiting()
        if waiting > seen and self._loop.time() < until:
            self._loop.call_soon(self._gather, waiting, until)
            return
        self._is_gathering = False
        self._is_due = True
        if self._is_asleep:
            self._awaken()

    def _awaken(self) -> None:
        self._is_asleep = False
        if self._wake.locked():
            self._wake.release()

    def _run(self) -> None:
        try:
            backend = self._open_backend()
        except BaseException as error:  # whoever opens the store gets it
            self._is_closing = True
            self._tell(_reject, self._opened, error)
            self._tell(_resolve, self._closed, None)
            return
        self._tell(_resolve, self._opened, None)
        try:
            self._work(backend)
            backend.close()
        except Exception as error:
            # Whatever was acknowledged is on disk; there is nobody to tell but whoever waits.
            self.notice(_failed(error))
        finally:
            self._tell(_resolve, self._closed, None)

    def _work(self, backend: Backend) -> None:
        wants_idle = True
        while True:
            while self._is_due or (self._is_closing and self._waiting()):
                self._await_follower()
                reads = self._one_group(backend)
                wants_idle = self._tidy(backend, is_idle=False) or wants_idle
                self._run_reads(backend, reads)
            if self._is_closing and not self._waiting():
                return
            if not self._sleep(IDLE_S if wants_idle else -1):
                wants_idle = self._tidy(backend, is_idle=True)

    def _sleep(self, seconds: float) -> bool:
        """Wait for calls; return whether some came, rather than the time having passed."""
        self._is_asleep = True
        # The last one may have come before the flag was up: look again before sleeping.
        if self._is_due or self._is_closing:
            self._is_asleep = False
            return True
        came = self._wake.acquire(timeout=seconds)
        self._is_asleep = False
        return came

    def _await_follower(self) -> None:
        """Before those that yield begin, give whoever was just answered the time to write again.

        Without it they would begin in the very moment between two writes of one turn, every time.
        """
        left_s = self._follower_until - time.monotonic()
        if left_s > 0 and not self._calls and not self._is_closing and self._let_go < GOES_FIRST:
            self._is_due = False  # whoever comes now gathers, and wakes this thread
            if not self._calls:
                self._sleep(left_s)
            self._is_due = True

    def _one_group(self, backend: Backend) -> list[ReadCall]:
        # First, so that a call which comes too late for this group gathers for the next one.
        self._is_due = False
        waiting = self._calls
        group: list[WriteCall] = []
        reads: list[ReadCall] = []
        while waiting and len(group) < GROUP_LIMIT:
            call = waiting.popleft()
            if isinstance(call, WriteCall):
                group.append(call)
            else:
                reads.append(call)
        is_followed = any(call.verb is not None and call.verb.is_followed for call in group)
        group += self._yielding_part(is_alone=not group)
        if len(group) >= GROUP_LIMIT or self._yielding:
            self._is_due = True
        if not group:
            return reads
        if self._failure is not None:
            self._tell(self._deliver, rejected(group, self._failure))
            return reads
        try:
            for settled in settle(backend, group, self._clock.now):
                for _, error in settled.errors:
                    self.notice(error)
                self._tell(self._deliver, settled)
        except BaseException as error:
            # A bug below: without an answer the callers would wait for ever.
            failure = _failed(error)
            self.notice(failure)
            self._tell(self._deliver, rejected(group, failure))
        self._follower_until = time.monotonic() + FOLLOWER_S if is_followed else 0.0
        return reads

    def _yielding_part(self, *, is_alone: bool) -> list[WriteCall]:
        """Return what of those that yield joins this group: a few, while nobody else writes.

        Where somebody always does, they join one group after so many that went first.
        """
        is_let_go = bool(self._yielding) and not is_alone and self._let_go < GOES_FIRST
        self._let_go = self._let_go + 1 if is_let_go else 0
        part: list[WriteCall] = []
        rows, functions = self._yielding_rows, YIELDING_FUNCTIONS
        room = 0 if is_let_go else rows * functions
        while self._yielding and room > 0:
            part.append(self._yielding.popleft())
            room -= rows if part[-1].verb is None else functions
        return part

    def _run_reads(self, backend: Backend, reads: Iterable[ReadCall]) -> None:
        for call in reads:
            try:
                rows: Sequence[Row] = backend.read(call.sql, call.params)
            except BaseException as error:  # the reader's own
                self._tell(_reject, call.future, error)
            else:
                self._tell(_resolve, call.future, rows)

    def _tidy(self, backend: Backend, *, is_idle: bool) -> bool:
        if self._failure is not None:
            return False
        try:
            return backend.tidy(is_idle=is_idle)
        except Exception as error:
            self.notice(error if isinstance(error, StoreDamaged) else _failed(error))
            return False

    def _tell(self, act: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(act, *args)
        except RuntimeError:  # the event loop is closed: nobody is left to be told
            self._is_closing = True


def _failed(error: BaseException) -> StoreFailed:
    if isinstance(error, StoreFailed):
        return error
    failure = StoreFailed(f"the writer failed: {error!r}")
    failure.__cause__ = error
    return failure


def _resolve(future: WriteOutcome, value: object) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: WriteOutcome, error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
