"""All time: what the wall says, what has passed, and waiting for it."""

import asyncio
import heapq
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

LONGEST_NAP_S = 1.0  # a jump of the wall clock is noticed after this long at the latest
LEAP_S = 60.0  # what a wall clock may run ahead by itself between two looks
JUMP_S = 1.0  # the wall clock is slewed by less than this between two looks


class Alarm(Protocol):
    """A call that was ordered for later and may still be called off."""

    def cancel(self) -> object: ...


class Clock(Protocol):
    """The only source of time; wall times are whole milliseconds since 1970, UTC."""

    def now(self) -> int: ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that much monotonic time, wherever the wall clock is moved meanwhile."""
        ...

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        """Call `act` on the event loop after that much monotonic time."""
        ...


def ahead_s(clock: Clock) -> float:
    """Return how far the wall clock is ahead of the monotonic one."""
    return clock.now() / 1000 - clock.monotonic()


@asynccontextmanager
async def time_limit(clock: Clock, seconds: float) -> AsyncGenerator[None, None]:
    """Raise TimeoutError in the body once `seconds` of the clock have passed."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        alarm = clock.call_later(seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            alarm.cancel()


async def wait_until(clock: Clock, wall_ms: int, woken: asyncio.Event) -> None:
    """Wait for an event, though not past an instant; a wall clock that is moved back ends it, too.

    Whoever waits must look again: what was far away may be near now, and the other way round.
    """
    naps = _Naps(clock, wall_ms, woken)
    try:
        await woken.wait()
    finally:
        naps.end()


class _Naps:
    """Short naps up to an instant of the wall clock, which may be moved in between."""

    def __init__(self, clock: Clock, wall_ms: int, woken: asyncio.Event) -> None:
        self._clock = clock
        self._wall_ms = wall_ms
        self._woken = woken
        self._ahead_s = ahead_s(clock)
        self._alarm = self._nap()

    def end(self) -> None:
        self._alarm.cancel()

    def _nap(self) -> Alarm:
        left_s = max(0, self._wall_ms - self._clock.now()) / 1000
        return self._clock.call_later(min(left_s, LONGEST_NAP_S), self._look)

    def _look(self) -> None:
        went_back = ahead_s(self._clock) < self._ahead_s - JUMP_S
        if went_back or self._clock.now() >= self._wall_ms:
            self._woken.set()
        else:
            self._alarm = self._nap()


class ClockRollbacks:
    """Notices that the wall clock was moved back since somebody looked; None: it may have been."""

    def __init__(self, latest: int | None = None) -> None:
        self._latest = latest

    def was_moved_back(self, now: int) -> bool:
        """Tell whether it is earlier than it was before, by more than a slew, or may be."""
        latest, self._latest = self._latest, now
        if latest is None or now < latest - JUMP_S * 1000:
            return True
        self._latest = max(now, latest)
        return False

    def suspect(self) -> None:
        """Answer yes next time."""
        self._latest = None


class Leaps:
    """Notices that the wall clock was moved ahead since somebody looked; a suspend counts, too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = ahead_s(clock)

    def was_moved_ahead(self) -> bool:
        """Tell whether more time has passed on the wall than has passed; it counts from now on."""
        before, self._ahead_s = self._ahead_s, ahead_s(self._clock)
        return self._ahead_s > before + LEAP_S


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, act)


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self._now = now
        self._passed_s = 0.0
        self._order = 0
        self._alarms: list[tuple[float, int, _ManualAlarm]] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._passed_s

    async def sleep(self, seconds: float) -> None:
        passed = asyncio.Event()
        alarm = self.call_later(seconds, passed.set)
        try:
            await passed.wait()
        finally:
            alarm.cancel()

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        if seconds <= 0:
            return asyncio.get_running_loop().call_soon(act)
        alarm = _ManualAlarm(act)
        self._order += 1
        heapq.heappush(self._alarms, (self._passed_s + seconds, self._order, alarm))
        return alarm

    def advance(self, seconds: float) -> None:
        """Let time pass and wake, in order, whoever waited for it."""
        self._passed_s += seconds
        self.jump_to(self._now + round(seconds * 1000))
        while self._alarms and self._alarms[0][0] <= self._passed_s:
            heapq.heappop(self._alarms)[2].ring()

    def jump_to(self, wall_ms: int) -> None:
        """Move the wall clock alone, as an operator or NTP would."""
        self._now = wall_ms


class _ManualAlarm:
    """An alarm of the manual clock."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self._act = None

    def ring(self) -> None:
        if self._act is not None:
            self._act()
