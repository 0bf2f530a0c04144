"""The sender: takes deliveries from the outbox to their doors, in order per target."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wakeful.bus.bus import Bus
from wakeful.gate.throttle import Digests
from wakeful.outbox import held, outbox
from wakeful.outbox.outbox import Delivery, DeliveryState, ReadyDelivery
from wakeful.store.database import Store, Tx
from wakeful.vocabulary.clock import Clock, ClockRollbacks, time_limit, wait_until
from wakeful.vocabulary.errors import (
    InvalidInput,
    Permanent,
    StoreFailed,
    Transient,
    UnreadableRow,
)
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.retrying import retrying
from wakeful.vocabulary.text import error_text

# Returns when the receiver has it; may be called again with the same delivery id.
Door = Callable[[ReadyDelivery], Awaitable[None]]

TIMEOUT_S = 30.0
LOOK_EVERY_MS = 60_000
FIRST_WAIT_MS = 1_000
LONGEST_WAIT_MS = 600_000
TARGETS_AT_ONCE = 64

log = logging.getLogger(__name__)


class Sender:
    """A service that sends; one dead target never delays another."""

    def __init__(
        self, store: Store, bus: Bus, clock: Clock, digests: Digests, doors: Mapping[str, Door]
    ) -> None:
        self._digests = digests
        self._store = store
        self._bus = bus
        self._clock = clock
        self._doors = doors
        self._busy: set[str] = set()
        self._filed: set[str] = set()  # targets that something was filed for just now
        self._changed = asyncio.Event()
        self._next_scan = 0
        self._rollbacks = ClockRollbacks()  # it may have been moved while nobody ran

    def follow(self, doors: Mapping[str, Door]) -> None:
        """Send through these doors from now on."""
        self._doors = doors

    def knows(self, door: str) -> bool:
        """Tell whether something can be sent through a door of this name."""
        return door in self._doors

    async def run(self) -> None:
        unlisten = self._store.listen(outbox.FILED, self._on_filed)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._changed.clear()
                    await retrying(self._clock, "sending", self._scan)
                    self._start(group)
                    await wait_until(self._clock, self._next_scan, self._changed)
        finally:
            unlisten()

    def _on_filed(self, target: str) -> None:
        self._filed.add(target)
        self._changed.set()

    async def _scan(self) -> None:
        """Ask the ledger, now and then, who waits; most of the time a notification says it."""
        now = self._clock.now()
        was_moved_back = self._rollbacks.was_moved_back(now)
        if now < self._next_scan and not was_moved_back:
            return
        self._next_scan = now + LOOK_EVERY_MS
        try:
            rows = await self._store.read(outbox.OPEN_TARGETS)
            if was_moved_back and any(due_at > now for _, due_at in rows):
                await self._store.transact(outbox.bring_forward)
                rows = await self._store.read(outbox.OPEN_TARGETS)
        except BaseException:
            self._next_scan = now
            self._rollbacks.suspect()
            raise
        for target, due_at in rows:
            if due_at <= now:
                self._filed.add(target)
            else:
                self._next_scan = min(self._next_scan, due_at)

    def _start(self, group: asyncio.TaskGroup) -> None:
        for target in tuple(self._filed):
            if len(self._busy) >= TARGETS_AT_ONCE:
                return
            if target not in self._busy:
                self._filed.discard(target)
                self._busy.add(target)
                task = group.create_task(self._serve(target), name=f"send to {target!r}")
                task.add_done_callback(lambda _, target=target: self._served(target))

    def _served(self, target: str) -> None:
        self._busy.discard(target)
        if self._filed:
            self._changed.set()

    async def _serve(self, target: str) -> None:
        """Send what waits for one target until nothing is due."""
        try:
            while delivery := await self._store.transact(lambda tx: self._begin(tx, target)):
                await self._attempt(delivery)
        except StoreFailed:
            log.error("sending stops: the store has failed")
        except Exception:
            log.warning("sending waits: something went wrong", exc_info=True)
            self._scan_at(self._clock.now() + FIRST_WAIT_MS)

    def _scan_at(self, when: int) -> None:
        self._next_scan = min(self._next_scan, when)
        self._changed.set()

    def _begin(self, tx: Tx, target: str) -> Delivery | None:
        """Note that the first delivery of a target is about to be sent, if it is due.

        What was held back leaves as a digest with this very commit: it is made once.
        """
        next_digest_at = self._digests.make(tx, target)
        delivery = self._first(tx, target)
        if delivery is None or delivery.due_at > tx.now:
            later = (next_digest_at, None if delivery is None else delivery.due_at)
            due_at = min((at for at in later if at is not None), default=None)
            if due_at is not None:
                tx.after_commit(lambda: self._scan_at(due_at))
            return None
        outbox.begin(tx, delivery.id)
        self._publish(tx, "delivery.sent", delivery, None)
        return delivery

    def _first(self, tx: Tx, target: str) -> Delivery | None:
        """Return what goes first to a target; what can be sent no more is settled on the way."""
        while True:
            try:
                delivery = outbox.first_of(tx, target)
            except UnreadableRow as error:
                unreadable = outbox.first_partly(tx, target)
                self._settle(tx, unreadable, DeliveryState.FAILED, error_text(error))
                continue
            if delivery is None or not _is_over(delivery, tx.now):
                return delivery
            self._settle(tx, delivery, DeliveryState.EXPIRED, "not delivered in time")

    async def _attempt(self, delivery: Delivery) -> None:
        try:
            door = self._doors.get(delivery.route.door)
            if door is None:
                raise Transient(f"no door {delivery.route.door!r} is open")
            ready = await outbox.made_ready(self._store, delivery)
            failpoint("send")
            async with time_limit(self._clock, TIMEOUT_S):
                await door(ready)
            failpoint("sent")
        except (Permanent, InvalidInput) as error:
            await self._note(delivery, DeliveryState.FAILED, error_text(error))
        except Exception as error:
            await self._try_again(delivery, error)
        else:
            await self._note(delivery, DeliveryState.ACKNOWLEDGED, None)

    async def _note(self, delivery: Delivery, state: DeliveryState, error: str | None) -> None:
        await self._store.transact(lambda tx: self._settle(tx, delivery, state, error))

    async def _try_again(self, delivery: Delivery, error: Exception) -> None:
        text = f"{type(error).__name__}: {error_text(error)}"
        log.info("the delivery %s failed and is tried again: %s", delivery.id, text)
        wait_ms = min(FIRST_WAIT_MS * 2 ** min(delivery.attempts, 20), LONGEST_WAIT_MS)
        if isinstance(error, Transient) and error.retry_after_s is not None:
            wait_ms = max(wait_ms, round(error.retry_after_s * 1000))

        def write(tx: Tx) -> None:
            # Not past its own end: what expires must not keep what follows it waiting.
            outbox.again(tx, delivery.id, min(tx.now + wait_ms, delivery.expires_at), text)
            self._publish(tx, "delivery.retry", delivery, text)

        await self._store.transact(write)

    def _settle(self, tx: Tx, delivery: Delivery, state: DeliveryState, error: str | None) -> None:
        """Write how a delivery ended; the parts of a digest end with it."""
        if not outbox.settle(tx, delivery.id, state, error):
            return
        self._publish(tx, f"delivery.{state.value}", delivery, error)
        for part in held.settle_parts(tx, delivery.id, state, error) if delivery.parts else ():
            self._publish(tx, f"delivery.{state.value}", part, error)

    def _publish(self, tx: Tx, kind: str, delivery: Delivery, error: str | None) -> None:
        data: dict[str, Any] = {"delivery_id": delivery.id}
        if delivery.sent_with is None:
            data["attempts"] = delivery.attempts + 1
        else:
            data["sent_with"] = delivery.sent_with
        if error is not None:
            data["error"] = error
        self._bus.publish(tx, kind, delivery.session_key, turn_id=delivery.turn_id, **data)


def _is_over(delivery: Delivery, now: int) -> bool:
    """Tell whether a delivery's time is over; never before an attempt is known to have failed.

    One that is marked as sent may have been cut off before anything was sent.
    """
    was_tried = delivery.attempts > 0 and delivery.state is DeliveryState.QUEUED
    return was_tried and delivery.expires_at <= now
