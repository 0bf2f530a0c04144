"""The timekeeper: fires each timer once, never early, whatever happens to the process."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from wakeful.bus.bus import Bus
from wakeful.store.database import Lock, Store, Tx
from wakeful.timers import timers
from wakeful.timers.timers import TIMERS, Timer
from wakeful.vocabulary.clock import Clock, wait_until
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.event import Event

# Called inside the transaction that removed the timer; may set it again.
Handler = Callable[[Tx, Timer, int], None]

LOOK_EVERY_MS = 60_000  # a lost notification costs at most this
BATCH = 100
RETRY_MS = 1_000

log = logging.getLogger(__name__)


class Timekeeper:
    """A service that sleeps until the next timer is due and fires it."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        clock: Clock,
        handlers: Mapping[str, Handler],
        lock: Callable[[str], Lock],
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._handlers = handlers
        self._lock = lock
        self._changed = asyncio.Event()
        self.looked_at: int | None = None  # for the dead-man check

    async def run(self) -> None:
        unlisten = self._store.listen(timers.SET, lambda _: self._changed.set())
        try:
            while True:
                await wait_until(self._clock, await self._fire_due(), self._changed)
        finally:
            unlisten()

    async def _fire_due(self) -> int:
        """Fire what is due and return when to look again."""
        self._changed.clear()
        self.looked_at = now = self._clock.now()
        try:
            rows = await self._store.read(
                TIMERS.select("ORDER BY due_at, id LIMIT :limit"),
                limit=BATCH,
            )
            due = [timer for timer in map(TIMERS.read, rows) if timer.due_at <= now]
            for timer in due:
                await self._store.write(
                    lambda tx, timer=timer: self._fire(tx, timer), locks=[self._lock(timer.target)]
                )
        except Transient:
            log.warning("timers wait: the store is not ready", exc_info=True)
            return now + RETRY_MS
        if len(due) < len(rows):
            return min(TIMERS.read(rows[len(due)]).due_at, now + LOOK_EVERY_MS)
        return now if due else now + LOOK_EVERY_MS

    def _fire(self, tx: Tx, timer: Timer) -> None:
        # Never early, even if the wall clock moved back since the timer was picked.
        if timer.due_at > tx.now or not timers.take(tx, timer):
            return
        self._bus.publish(tx, _fired(timer, tx.now))
        handler = self._handlers.get(timer.kind)
        if handler is None:
            log.error("no handler for a timer of kind %r; it is dropped: %r", timer.kind, timer.id)
            return
        handler(tx, timer, tx.now)


def _fired(timer: Timer, now: int) -> Event:
    """Return the record of a firing: which timer, due when, how late."""
    return Event(
        kind="timer.fired",
        session_key=timer.target,
        data={
            "timer_id": timer.id,
            "kind": timer.kind,
            "due_at": timer.due_at,
            "late_ms": now - timer.due_at,
        },
    )
