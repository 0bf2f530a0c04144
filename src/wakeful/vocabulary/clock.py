"""All time: what the wall says, what has passed, and waiting for it."""

import asyncio
import heapq
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

LONGEST_NAP_S = 30.0  # a jump of the wall clock is noticed after this long at the latest


class Alarm(Protocol):
    """A call that was ordered for later and may still be called off."""

    def cancel(self) -> object: ...


class Clock(Protocol):
    """The only source of time; wall times are whole milliseconds since 1970, UTC."""

    def now(self) -> int: ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...

    async def sleep_until(self, wall_ms: int) -> None:
        """Return when `now()` has reached `wall_ms`, never before."""
        ...

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        """Call `act` on the event loop after that much monotonic time."""
        ...


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
    """Wait for an event, though not past an instant; may also return for no reason."""
    left_s = max(0, wall_ms - clock.now()) / 1000
    alarm = clock.call_later(min(left_s, LONGEST_NAP_S), woken.set)
    try:
        await woken.wait()
    finally:
        alarm.cancel()


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep_until(self, wall_ms: int) -> None:
        # Naps are short because the wall clock may be moved while we sleep.
        while (left_ms := wall_ms - self.now()) > 0:
            await asyncio.sleep(min(left_ms / 1000, LONGEST_NAP_S))

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, act)


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self._now = now
        self._passed_s = 0.0
        self._order = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._alarms: list[tuple[float, int, _ManualAlarm]] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._passed_s

    async def sleep_until(self, wall_ms: int) -> None:
        while wall_ms > self._now:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._sleepers, (wall_ms, self._next_order(), woken))
            await woken

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        if seconds <= 0:
            return asyncio.get_running_loop().call_soon(act)
        alarm = _ManualAlarm(act)
        heapq.heappush(self._alarms, (self._passed_s + seconds, self._next_order(), alarm))
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
        while self._sleepers and self._sleepers[0][0] <= wall_ms:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    def next_wake(self) -> int | None:
        """Return when the next sleeper is due, or None."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _next_order(self) -> int:
        self._order += 1
        return self._order


class _ManualAlarm:
    """An alarm of the manual clock."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self._act = None

    def ring(self) -> None:
        if self._act is not None:
            self._act()
