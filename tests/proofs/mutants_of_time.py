"""Mutants that break what timers promise."""
# A mutant must reach into what is private: that is where promises are kept.
# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from tests.proofs.patching import original, patch
from wakeful.automations import runs
from wakeful.automations.policies import FallenDue
from wakeful.lanes.lane import LaneRunner
from wakeful.sleeps.sleeps import Sleep, WokenBy
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due, Timekeeper
from wakeful.timers.timers import Timer
from wakeful.triggers.sleeping import Sleeping
from wakeful.turn.context import Context
from wakeful.vocabulary.automation import AutomationRun
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.message import Message

AHEAD_MS = 3_600_000
GET_SLEEPS = "wakeful.sleeps.sleeps:get_all"


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


def pending_waker_overlooked() -> None:
    """Fall asleep although somebody waits."""
    patch("wakeful.broker.stimuli:has_waker", lambda *_: False)


def sleep_outlasts_a_message() -> None:
    """Leave the sleep to whoever opens the turn of a message that should have ended it."""
    patch("wakeful.intake.accept:Acceptance._disturb", lambda *_: None)
    run = original("wakeful.lanes.lane:LaneRunner.run")

    async def run_later(self: LaneRunner, session_key: str, *, yields: bool = False) -> None:
        await asyncio.sleep(0.002)  # noqa: TID251 (never in the millisecond of the message)
        await run(self, session_key, yields=yields)

    patch("wakeful.lanes.lane:LaneRunner.run", run_later)


def sleep_not_in_the_feed() -> None:
    """Fall asleep and wake without a mark of either."""
    patch("wakeful.sleeps.marks:add", lambda *_: None)


def nothing_wakes() -> None:
    """Fall asleep without a timer."""
    keep = original("wakeful.triggers.sleeping:Sleeping._keep")

    def keep_without_timer(self: Sleeping, tx: Tx, asleep: Sequence[Sleep]) -> None:
        keep(self, tx, asleep)
        for sleep in asleep:
            timers.cancel(tx, f"sleep {sleep.owner}")

    patch("wakeful.triggers.sleeping:Sleeping._keep", keep_without_timer)


def generation_ignored() -> None:
    """Wake whoever slept when a timer was set, whether or not they still do."""
    keep, get_all = original("wakeful.triggers.sleeping:Sleeping._keep"), original(GET_SLEEPS)
    known: dict[str, Sleep] = {}

    def keep_and_remember(self: Sleeping, tx: Tx, asleep: Sequence[Sleep]) -> None:
        keep(self, tx, asleep)
        known.update({sleep.owner: sleep for sleep in asleep})

    def fire(self: Sleeping, tx: Tx, dues: Sequence[Due[None]]) -> None:
        asleep = get_all(tx, [due.timer.target for due in dues])
        owners = [due.timer.target for due in dues]
        found = [asleep.get(owner) or known.get(owner) for owner in owners]
        self.wake(tx, [sleep for sleep in found if sleep is not None], WokenBy.TIMER)

    patch("wakeful.triggers.sleeping:Sleeping._keep", keep_and_remember)
    patch("wakeful.triggers.sleeping:Sleeping.fire", fire)


def timer_fires_twice() -> None:
    """Set a timer again in the transaction that fires it, as if it had not."""
    take = original("wakeful.timers.timers:take")
    again: set[str] = set()

    def take_once_more(tx: Tx, due: Collection[Timer]) -> dict[str, Timer]:
        taken: dict[str, Timer] = take(tx, due)
        for timer in due:
            if timer.id in taken.keys() - again:
                again.add(timer.id)
                timers.put(tx, timer)
        return taken

    patch("wakeful.timers.timers:take", take_once_more)


def run_identified_by_turn() -> None:
    """Name a run after its turn: taken up again it is another one."""
    begin = original("wakeful.automations.runs:begin")

    def begin_anew(tx: Tx, run: AutomationRun, turn_id: str, *rest: Any) -> AutomationRun:
        fresh = replace(run, id=f"{run.job_id}:{turn_id}")
        runs.add(tx, [fresh])
        return begin(tx, fresh, turn_id, *rest)

    patch("wakeful.automations.runs:begin", begin_anew)


def run_row_beside_the_commit() -> None:
    """Keep the rows of runs until the next ones are written."""
    add = original("wakeful.automations.runs:add")
    kept: list[AutomationRun] = []

    def add_later(tx: Tx, wanted: Sequence[AutomationRun]) -> None:
        add(tx, list(kept))
        kept[:] = wanted

    patch("wakeful.automations.runs:add", add_later)


def run_left_open() -> None:
    """Let a stimulus end without its run."""
    patch("wakeful.automations.runs:of_stimuli", lambda *_: {})


def missed_not_told() -> None:
    """Leave out the row that stands for what was missed."""
    fallen_due = original("wakeful.automations.policies:fallen_due")

    def untold(*args: Any) -> FallenDue:
        return replace(fallen_due(*args), missed=0, newest_missed=None)

    patch("wakeful.automations.policies:fallen_due", untold)


def prompt_forgotten() -> None:
    """Ask the model without the prompt of the run."""

    def without(context: Context, *_: object) -> Sequence[Message]:
        return context.messages

    patch("wakeful.turn.asking:with_prompt", without)
