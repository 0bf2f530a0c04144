"""A lane at work: claim, think, release."""

import asyncio
import logging

from wakeful.broker import lanes
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.opening import Opened, Opening
from wakeful.store.database import Store
from wakeful.turn import limits
from wakeful.turn.journal import Ended, Fenced, Journal, Next
from wakeful.turn.turn import Thinker
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import StoreFailed, Transient
from wakeful.vocabulary.failpoints import failpoint

log = logging.getLogger(__name__)


class LaneRunner:
    """Runs one turn of one lane at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        opening: Opening,
        thinker: Thinker,
        interrupts: Interrupts,
    ) -> None:
        self._store = store
        self._clock = clock
        self._opening = opening
        self._thinker = thinker
        self._interrupts = interrupts

    async def run(self, session_key: str) -> None:
        """Run the lane's next turn, if there is one, and leave the lane free."""
        failpoint("P3")
        opened = await self._store.write(
            lambda tx: self._opening.open_next(tx, session_key), locks=[lanes.lock(session_key)]
        )
        if opened is None:
            return
        next = await self._think(opened)
        if not isinstance(next, Fenced) and not opened.journal.is_stale:
            self._opening.contexts.keep(session_key, opened.journal.context)

    async def _think(self, opened: Opened) -> Next:
        journal = opened.journal
        if isinstance(opened.next, Ended):
            return opened.next
        try:
            failpoint("P4")
            return await self._within_limits(journal, opened.next)
        except asyncio.CancelledError:
            await self._thinker.leave_for_later(journal)
            raise
        except (StoreFailed, Transient):
            raise  # nothing can be written: recovery will find the turn as it is
        except Exception as error:
            log.exception("the turn %s failed", journal.turn.id)
            return await self._thinker.fail(journal, error)

    async def _within_limits(self, journal: Journal, next: Next) -> Next:
        """Think until the turn rests, is interrupted, or has used up its time."""
        wall_s = limits.wall_s(journal.turn, journal.mind.config.limits)
        interrupt = asyncio.timeout(None)
        try:
            async with interrupt:
                with self._interrupts.watching(journal.turn.id, interrupt):
                    async with time_limit(self._clock, wall_s):
                        return await self._thinker.think(journal, next)
        except TimeoutError:
            if interrupt.expired():
                return await self._thinker.end_interrupted(journal)
            return await self._thinker.end_out_of_time(journal)
