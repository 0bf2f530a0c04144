"""The timekeeper: fires each timer once, never early, whatever happens to the process."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from wakeful.bus.bus import Bus
from wakeful.store.database import Lock, Store, Tx
from wakeful.timers import timers
from wakeful.timers.timers import TIMERS, Timer
from wakeful.vocabulary.clock import Clock, wait_until
from wakeful.vocabulary.errors import Invariant, StoreFailed, Transient
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.text import told

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
        more_locks: Sequence[Lock] = (),
    ) -> None:
        self._store = store
        self._more_locks = more_locks
        self._bus = bus
        self._clock = clock
        self._handlers = handlers
        self._lock = lock
        self._changed = asyncio.Event()

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
        now = self._clock.now()
        try:
            rows = await self._store.read(
                TIMERS.select("ORDER BY due_at, id LIMIT :limit"),
                limit=BATCH,
            )
            due = [timer for timer in map(TIMERS.read, rows) if timer.due_at <= now]
            for timer in due:
                await self._fire_one(timer)
        except Transient:
            log.warning("timers wait: the store is not ready", exc_info=True)
            return now + RETRY_MS
        if len(due) < len(rows):
            return min(TIMERS.read(rows[len(due)]).due_at, now + LOOK_EVERY_MS)
        return now if due else now + LOOK_EVERY_MS

    async def _fire_one(self, timer: Timer) -> None:
        locks = [self._lock(timer.target), *self._more_locks]
        try:
            await self._store.write(lambda tx: self._fire(tx, timer), locks=locks)
        except (Transient, StoreFailed):
            raise
        except Exception as error:
            # One bad timer must not hold up the others, now or at the next start.
            log.exception("the timer %r failed and is dropped", timer.id)
            reason = told(error)
            await self._store.write(lambda tx: self._drop(tx, timer, reason), locks=locks)

    def _drop(self, tx: Tx, timer: Timer, error: str) -> None:
        if timers.take(tx, timer):
            self._bus.publish(tx, _event("timer.failed", timer, error=error))

    def _fire(self, tx: Tx, timer: Timer) -> None:
        # Never early, even if the wall clock moved back since the timer was picked.
        if timer.due_at > tx.now or not timers.take(tx, timer):
            return
        handler = self._handlers.get(timer.kind)
        if handler is None:
            raise Invariant(f"no handler for a timer of kind {timer.kind!r}")
        late_ms = tx.now - timer.due_at
        self._bus.publish(tx, _event("timer.fired", timer, late_ms=late_ms))
        handler(tx, timer, tx.now)


def _event(kind: str, timer: Timer, **rest: object) -> Event:
    """Return the record of what became of a timer."""
    data: dict[str, object] = {
        "timer_id": timer.id,
        "kind": timer.kind,
        "due_at": timer.due_at,
        **rest,
    }
    return Event(kind=kind, session_key=timer.target, data=data)
