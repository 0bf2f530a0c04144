"""Keeping a busy event loop from starving the threads of the store.

A thread that waits for the interpreter asks for it after the switch interval (5 ms), but begins
anew whenever the holder lets go for a moment. An event loop lets go at each look at its sockets
and is back before the thread has woken up: with rounds shorter than the interval it can keep a
commit waiting for seconds. A very short interval makes the thread ask in time; it costs
some CPU, so it is set only while somebody waits without progress.
"""

import asyncio
import sys

PATIENCE_S = 0.01  # without an answer in this time somebody is kept waiting
URGENT_INTERVAL_S = 0.00001
CALM_LOOKS = 10  # so many times in a row there was progress before it is over

_usual_interval_s = sys.getswitchinterval()


class Urgency:
    """Watches, on the event loop, that whoever waits for a thread gets answers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = 0
        self._answers = 0
        self._answers_seen = 0
        self._is_watching = False
        self._looks_left = 0  # while the interval is short

    def asked(self) -> None:
        self._waiting += 1
        if not self._is_watching:
            self._is_watching = True
            self._loop.call_later(PATIENCE_S, self._look)

    def answered(self, count: int = 1) -> None:
        self._waiting -= count
        self._answers += 1

    def end(self) -> None:
        """Leave the interval as it was; nobody will look any more."""
        self._waiting = 0
        if self._looks_left:
            self._looks_left = 0
            sys.setswitchinterval(_usual_interval_s)

    def _look(self) -> None:
        if self._waiting and self._answers == self._answers_seen:
            self._looks_left = CALM_LOOKS
            sys.setswitchinterval(URGENT_INTERVAL_S)
        elif self._looks_left:
            self._looks_left -= 1
            if not self._looks_left:
                sys.setswitchinterval(_usual_interval_s)
        self._answers_seen = self._answers
        self._is_watching = bool(self._waiting or self._looks_left)
        if self._is_watching:
            self._loop.call_later(PATIENCE_S, self._look)
