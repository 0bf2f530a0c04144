"""Mutants that break what timers promise."""
# A mutant must reach into what is private: that is where promises are kept.
# pyright: reportPrivateUsage=false

from collections.abc import Collection, Sequence
from typing import Any

from tests.proofs.patching import original, patch
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due, Timekeeper
from wakeful.timers.timers import Timer
from wakeful.vocabulary.clock import SystemClock

AHEAD_MS = 3_600_000


def timers_fire_early() -> None:
    """Take every timer for due an hour before it is."""
    init = original("wakeful.timers.timekeeper:Timekeeper.__init__")

    def init_ahead(self: Timekeeper, *args: Any, **rest: Any) -> None:
        init(self, *args, **rest)
        self._clock = _Ahead()

    def fire(self: Timekeeper, tx: Tx, dues: Sequence[Due[Any]]) -> Sequence[bool]:
        taken = timers.take(tx, [due.timer for due in dues])
        for due in dues:
            late_ms = tx.now - due.timer.due_at
            self._publish(tx, "timer.fired", due.timer, late_ms=late_ms)
            self._kinds[due.timer.kind].fire(tx, [due])
        return [due.timer.id in taken for due in dues]

    patch("wakeful.timers.timekeeper:Timekeeper.__init__", init_ahead)
    patch("wakeful.timers.timekeeper:Timekeeper._fire", fire)


class _Ahead(SystemClock):
    def now(self) -> int:
        return super().now() + AHEAD_MS


def timer_fires_twice() -> None:
    """Set a timer again in the transaction that fires it, as if it had not."""
    take = original("wakeful.timers.timers:take")
    again: set[str] = set()

    def take_once_more(tx: Tx, due: Collection[Timer]) -> set[str]:
        taken = take(tx, due)
        for timer in due:
            if timer.id in taken - again:
                again.add(timer.id)
                timers.put(tx, timer)
        return taken

    patch("wakeful.timers.timers:take", take_once_more)
