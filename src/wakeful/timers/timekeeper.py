"""The timekeeper: fires each timer once, never early, whatever happens to the process."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Generic, TypeVar

from wakeful.bus.bus import Bus
from wakeful.store.database import Lock, Store, Tx, Verb
from wakeful.timers import timers
from wakeful.timers.timers import TIMERS, Timer
from wakeful.vocabulary.clock import Clock, wait_until
from wakeful.vocabulary.errors import (
    Overloaded,
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
)
from wakeful.vocabulary.retrying import retrying
from wakeful.vocabulary.text import error_text

LOOK_EVERY_MS = 60_000  # a lost notification costs at most this
PAGE = 200  # timers that are read at once; the store decides how many of them share a commit
MANY = 8  # that are due at once let others write first; fewer keep nobody waiting
FIRST_RETRY_MS = 1_000
LONGEST_RETRY_MS = 3_600_000

# What the store says to everybody; anything else that a timer fails with is its own.
_OF_THE_STORE = (StoreBusy, StoreFull, Overloaded, StoreRefused, StoreDamaged, StoreFailed)

Fact = TypeVar("Fact")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Due(Generic[Fact]):
    """A timer whose time has come, with what was prepared for it."""

    timer: Timer
    fact: Fact


@dataclass(frozen=True)
class TimerKind(Generic[Fact]):
    """What happens when timers of one kind fire.

    `prepare` runs before the transaction and off the event loop: it may read files, and hands
    over a small fact. `fire` runs in the transaction that removed the timers, over those that
    follow each other there, in order; it may set them again. It should not raise: whatever
    either raises keeps the timer, which is tried again later.
    """

    fire: Callable[[Tx, Sequence[Due[Fact]]], None]
    prepare: Callable[[Timer], Fact] | None = None  # None: the fact is None


class Timekeeper:
    """A service that sleeps until a timer is due and fires it; kinds it does not know, it leaves.

    `locks` names what a timer's transaction must hold.
    """

    def __init__(
        self,
        store: Store,
        bus: Bus,
        clock: Clock,
        kinds: Mapping[str, TimerKind[Any]],
        locks: Callable[[Timer], Sequence[Lock]],
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._kinds = kinds
        self._few: Verb[Due[Any], bool] = Verb(
            "fire", self._fire, locks=lambda due: locks(due.timer)
        )
        self._many = replace(self._few, yields=True)
        self._changed = asyncio.Event()
        self._asleep_until: int | None = None  # None: it is looking
        self._unknown: set[str] = set()  # kinds that the log has named

    @property
    def firing(self) -> Verb[Due[Any], bool]:
        """How timers fire, for whoever looks ahead."""
        return self._few

    async def run(self) -> None:
        unlisten = self._store.listen(timers.SET, self._on_set)
        try:
            while True:
                self._changed.clear()
                self._asleep_until = None
                self._asleep_until = await retrying(self._clock, "timers", self.fire_due)
                await wait_until(self._clock, self._asleep_until, self._changed)
        finally:
            unlisten()

    async def fire_due(self) -> int:
        """Fire whatever is due, page by page, and return when to look again."""
        kinds = list(self._kinds)
        while rows := await self._store.read(
            timers.DUE, now=self._clock.now(), kinds=kinds, limit=PAGE
        ):
            if not await self._fire_page(list(map(TIMERS.read, rows))):
                break  # the wall clock was moved back meanwhile
            if len(rows) < PAGE:
                break  # that was all: if there is more by now, the next look is at once
        now = self._clock.now()
        await self._name_unknown_kinds(now)
        first = await self._store.read(timers.NEXT, kinds=kinds)
        return min([now + LOOK_EVERY_MS, *(row[0] for row in first)])

    def _on_set(self, due_at: str) -> None:
        if self._asleep_until is None or int(due_at) < self._asleep_until:
            self._changed.set()

    async def _name_unknown_kinds(self, now: int) -> None:
        for (kind,) in await self._store.read(
            timers.UNKNOWN_KINDS, now=now, kinds=list(self._kinds)
        ):
            if kind not in self._unknown:
                self._unknown.add(kind)
                log.warning("timers of the kind %r wait for a release that knows it", kind)

    async def _fire_page(self, page: Sequence[Timer]) -> bool:
        """Fire timers in the order in which they were due; return whether any was dealt with."""
        page = sorted(page, key=lambda timer: (timer.due_at, timer.id))
        prepared = await self._prepared(page)
        ready = [due for due in prepared if isinstance(due, Due)]
        # Begun in order, which the store keeps; it puts as many as there are into one commit.
        verb = self._many if len(ready) >= MANY else self._few
        fired = await self._store.batch_all(verb, ready)
        outcomes = [
            *zip(page, prepared, strict=True),
            *((due.timer, outcome) for due, outcome in zip(ready, fired, strict=True)),
        ]
        failures = [(timer, error) for timer, error in outcomes if isinstance(error, Exception)]
        for timer, error in failures:
            if isinstance(error, _OF_THE_STORE):
                raise error
            log.warning("the timer %r failed and is tried again", timer.id, exc_info=error)
        if failures:
            await self._store.transact(lambda tx: self._keep(tx, failures))
        return bool(failures) or any(outcome is True for outcome in fired)

    async def _prepared(self, page: Sequence[Timer]) -> list[Due[Any] | BaseException]:
        """Return timers with their facts, or what kept one from being known."""
        slow = [timer for timer in page if self._kinds[timer.kind].prepare is not None]
        found = await asyncio.gather(*map(self._fact, slow), return_exceptions=True)
        facts: dict[str, Any] = {timer.id: fact for timer, fact in zip(slow, found, strict=True)}
        return [
            fact if isinstance(fact := facts.get(timer.id), BaseException) else Due(timer, fact)
            for timer in page
        ]

    async def _fact(self, timer: Timer) -> Any:
        prepare = self._kinds[timer.kind].prepare
        return None if prepare is None else await asyncio.to_thread(prepare, timer)

    def _fire(self, tx: Tx, dues: Sequence[Due[Any]]) -> Sequence[bool]:
        """Remove timers and do what is due; the only transaction in which one fires."""
        # Never early, even if the wall clock moved back since the timer was picked.
        taken = timers.take(tx, [due.timer for due in dues if due.timer.due_at <= tx.now])
        firing = [Due(taken[due.timer.id], due.fact) for due in dues if due.timer.id in taken]
        for due in firing:
            late_ms = tx.now - due.timer.due_at
            self._publish(tx, "timer.fired", due.timer, late_ms=late_ms)
        for kind, group in groupby(firing, key=lambda due: due.timer.kind):
            self._kinds[kind].fire(tx, list(group))
        return [due.timer.id in taken for due in dues]

    def _keep(self, tx: Tx, failures: Sequence[tuple[Timer, Exception]]) -> None:
        """Keep timers that failed, each until its next try."""
        for timer, error in failures:
            wait_ms = min(FIRST_RETRY_MS * 2 ** min(timer.failures, 20), LONGEST_RETRY_MS)
            retry_at = tx.now + wait_ms
            if timers.postpone(tx, timer, retry_at):
                self._publish(
                    tx,
                    "timer.failed",
                    timer,
                    error=error_text(error),
                    failures=timer.failures + 1,
                    retry_at=retry_at,
                )

    def _publish(self, tx: Tx, what: str, timer: Timer, **rest: Any) -> None:
        """Publish what became of a timer."""
        self._bus.publish(
            tx, what, timer.target, timer_id=timer.id, kind=timer.kind, due_at=timer.due_at, **rest
        )
