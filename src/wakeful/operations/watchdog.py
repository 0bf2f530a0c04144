"""The watchdog: ends a process whose event loop hangs, so that its supervisor starts it again.

A thread asks the event loop for a sign of life and counts its own ticks until one comes. Ticks,
not time: a suspended machine or a stopped process stands still with all its threads, and must not
be taken for one that hangs.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress

from wakeful.telemetry.metrics import Metrics
from wakeful.vocabulary.clock import Clock

STALLED = 7  # the exit code of a process that the watchdog ended
LONGEST_TICK_S = 1.0
TICKS = 10  # at least so many until the end
COMPLAINT_AT = 0.3  # of the limit: by then the stacks are logged
LAST_WORDS_S = 1.0  # the log itself may be what hangs

log = logging.getLogger(__name__)


class Watchdog:
    """Watches the running event loop from a thread of its own."""

    def __init__(self, clock: Clock, metrics: Metrics, limit_s: float) -> None:
        self._clock = clock
        self._metrics = metrics
        self.limit_s = limit_s
        self._tick_s = min(LONGEST_TICK_S, limit_s / TICKS)
        self._stopped = threading.Event()
        self._answered = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch the event loop that this is called on."""
        # Python itself may hang: a call into C that never gives its lock back stops every thread.
        # Such a call burns time on a processor, which the kernel counts for us; see `_rearm`.
        faulthandler.register(signal.SIGVTALRM, all_threads=True, chain=True)
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._watch, args=(loop,), name="watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._answered.set()
        if self._thread is not None:
            self._thread.join()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.unregister(signal.SIGVTALRM)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stopped.is_set():
            self._answered.clear()
            asked_s = self._clock.monotonic()
            try:
                loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:  # the loop is closed
                return
            self._wait_for_answer()
            self._metrics.loop_answered(self._clock.monotonic() - asked_s)
            self._rearm()
            self._stopped.wait(self._tick_s)

    def _wait_for_answer(self) -> None:
        ticks, has_complained = 0, False
        while not self._answered.wait(self._tick_s) and not self._stopped.is_set():
            ticks += 1
            self._rearm()
            silent_s = ticks * self._tick_s
            if silent_s >= self.limit_s:
                self._end(silent_s)
            elif silent_s >= self.limit_s * COMPLAINT_AT and not has_complained:
                has_complained = True
                self._metrics.loop_stalled()
                _say(f"the event loop has not answered for {silent_s:.1f} s\n{_stacks()}")
        if has_complained:
            _say(f"the event loop answers again, after {ticks * self._tick_s:.1f} s")

    def _end(self, silent_s: float) -> None:
        try:
            _say(f"the event loop has hung for {silent_s:.1f} s: the process ends\n{_stacks()}")
        finally:
            os._exit(STALLED)

    def _rearm(self) -> None:
        """Be killed, with the stacks on standard error, if no tick comes for so much work."""
        signal.setitimer(signal.ITIMER_VIRTUAL, self.limit_s + LONGEST_TICK_S)


def _say(words: str) -> None:
    """Log something, from yet another thread: whatever hangs may hold the log's own lock."""
    saying = threading.Thread(target=lambda: log.critical("%s", words), daemon=True)
    # Where no thread can be started, watching on is worth more than words.
    with suppress(RuntimeError):
        saying.start()
        saying.join(LAST_WORDS_S)


def _stacks() -> str:
    """Return where every thread is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in frames.items()
    )
