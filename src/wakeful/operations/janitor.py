"""The janitor: forgets what is settled and old, in small steps that hold nobody up."""

import logging
from collections.abc import Callable

from wakeful import attachments
from wakeful.approvals import approvals
from wakeful.automations import pruning
from wakeful.broker import inbox_counts, lane_rows, stimuli
from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows, storms
from wakeful.intake import dedup, deletion
from wakeful.notices import notices
from wakeful.outbox import outbox
from wakeful.sleeps import marks
from wakeful.store.database import Store, Tx
from wakeful.transcript import overheard, search, sessions
from wakeful.transcript.jsonl import imports
from wakeful.turns import turns
from wakeful.vocabulary.clock import Clock, Leaps
from wakeful.vocabulary.errors import StoreFailed, Transient
from wakeful.vocabulary.retention import Retention
from wakeful.vocabulary.retrying import retrying

SWEEP_EVERY_S = 3_600.0
FIRST_SWEEP_S = 60.0  # a start has better things to do
STEP = 500  # rows that one write looks at

DAY_MS = 86_400_000
FIRST_DAY = 719_163  # 1970-01-01, as budgets count days

log = logging.getLogger(__name__)

# Takes the cursor of the last step; returns the next one, or None when the sweep is done.
Step = Callable[[Tx, str], str | None]


class Janitor:
    """A service that sweeps every hour."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, kept: Retention) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._kept = kept

    def follow(self, kept: Retention) -> None:
        """Keep things for as long as this from the next sweep on."""
        self._kept = kept

    async def run(self) -> None:
        leaps = Leaps(self._clock)
        wait_s = FIRST_SWEEP_S
        while True:
            await self._clock.sleep(wait_s)
            wait_s = SWEEP_EVERY_S
            if leaps.was_moved_ahead():
                # What is forgotten is gone: a clock that is wrong for a moment must not do that.
                log.warning("the wall clock was moved ahead; sweeping waits until it stays so")
                continue
            await retrying(self._clock, "sweeping", self.sweep)

    async def sweep(self) -> None:
        """Forget everything that is past its time."""
        now = self._clock.now()
        kept = self._kept
        before, events_before = now - kept.ledger_days * DAY_MS, now - kept.event_days * DAY_MS
        steps: dict[str, Step] = {
            "stimuli": lambda tx, after: stimuli.prune(tx, after, before, STEP),
            "attachments": lambda tx, after: attachments.prune(tx, after, STEP),
            "turns": lambda tx, after: turns.prune(tx, after, before, STEP),
            "deliveries": lambda tx, after: outbox.prune(tx, after, before, STEP),
            "keys": lambda tx, _: dedup.prune(tx, now, STEP),
            "keys of old stimuli": lambda tx, after: dedup.prune_orphans(tx, after, STEP),
            "budgets": lambda tx, _: budget_rows.prune(tx, FIRST_DAY + now // DAY_MS, STEP),
            "storms": lambda tx, _: storms.prune(tx, now - DAY_MS, STEP),
            "approvals": lambda tx, _: approvals.prune(tx, before, STEP),
            "sources of the inbox": lambda tx, _: inbox_counts.prune(tx, STEP),
            "runs": lambda tx, _: pruning.prune_old(tx, now - kept.run_days * DAY_MS, STEP),
            "runs of each job": lambda tx, after: pruning.prune_beyond(
                tx, after, kept.runs_per_job, STEP
            ),
            "notices": lambda tx, _: notices.prune(tx, before, STEP),
            "sleeps": lambda tx, _: marks.prune(tx, before, STEP),
            "words in rooms": lambda tx, _: overheard.prune(tx, now - overheard.KEPT_MS, STEP),
            "imports": lambda tx, _: imports.sweep(tx, STEP),
            "lines of the index": lambda tx, after: search.sweep(tx, after, STEP),
            "events": lambda tx, _: self._bus.prune(tx, events_before, kept.events, STEP),
        }
        for what, step in steps.items():
            try:
                await self._sweep(step)
            except (StoreFailed, Transient):
                raise
            except Exception:  # the others must not grow for its sake
                log.exception("old %s could not be swept", what)
        # Last: as long as a ledger speaks of a session, its name is not free.
        await self._forget_deleted(min(before, events_before) - DAY_MS)

    async def _forget_deleted(self, before: int) -> None:
        after = ""
        while rows := await self._store.read(
            sessions.DELETED_BEFORE, after=after, before=before, limit=STEP
        ):
            keys = [row[0] for row in rows]
            await self._store.transact(
                lambda tx, keys=keys: deletion.forget(tx, keys), locks=map(lane_rows.lock, keys)
            )
            after = keys[-1]

    async def _sweep(self, step: Step) -> None:
        after: str | None = ""
        while after is not None:
            after = await self._store.transact(lambda tx, after=after: step(tx, after))
