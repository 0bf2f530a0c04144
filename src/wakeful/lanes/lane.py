"""A lane at work: claim, think, release."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from wakeful.gate.locking import write_in_lanes
from wakeful.lanes.contexts import ContextUnread
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.opening import Opened, Opening
from wakeful.store.database import Store
from wakeful.turn import limits
from wakeful.turn.attempt import Ended, Fenced, Next, TurnAttempt
from wakeful.turn.calls import LedgerToolFailed
from wakeful.turn.turn import TurnRunner
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import StoreFailed, StoreRefused, Transient
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.kinds import View

RETRY_S = 1.0  # before a lane that could not be given back is given back again; then twice as long
LONGEST_RETRY_S = 10.0
OPENING_TRIES = 3
ENDING_TRIES = 3  # then a turn is ended without a word

# Time or an operator must mend it; it says nothing about what was to be written.
STORE_NOT_READY = (Transient, StoreRefused)

log = logging.getLogger(__name__)


class LaneRunner:
    """Runs one turn of one lane at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        opening: Opening,
        turns: TurnRunner,
        interrupts: Interrupts,
    ) -> None:
        self._store = store
        self._clock = clock
        self._opening = opening
        self._turns = turns
        self._interrupts = interrupts
        self._stumbles: dict[str, int] = {}  # openings in a row that failed, lane by lane

    async def run(self, session_key: str, *, yields: bool = False) -> None:
        """Run the lane's next turn, if there is one, and leave the lane free.

        One that yields lets others write first.
        """
        failpoint("claim")
        try:
            opened = await self._open(session_key, yields=yields)
        except (StoreFailed, *STORE_NOT_READY):
            raise  # the store's fault, not the lane's
        except Exception:
            await self._stumble(session_key)
            raise
        finally:
            self._opening.contexts.forget(session_key)
        self._stumbles.pop(session_key, None)
        if opened is None:
            return
        next = await self._think(opened)
        attempt = opened.attempt
        is_whole = not attempt.is_stale and attempt.turn.view is not View.LIGHT
        if is_whole and not isinstance(next, Fenced):
            self._opening.contexts.keep(session_key, attempt.context)

    async def _open(self, session_key: str, *, yields: bool) -> Opened | None:
        failures: dict[str, str] = {}
        while True:
            known = dict(failures)
            try:
                return await write_in_lanes(
                    self._store,
                    [session_key],
                    lambda tx, known=known: self._opening.open_next(tx, session_key, known),
                    yields=yields,
                )
            except LedgerToolFailed as failed:
                failed.note()
                failures[failed.call.id] = failed.error_text
            except ContextUnread as unread:
                await self._opening.contexts.read_ahead(self._store, unread)
            except asyncio.CancelledError:  # it may have been committed all the same
                await write_in_lanes(
                    self._store, [session_key], lambda tx: self._opening.undo(tx, session_key)
                )
                raise

    async def _stumble(self, session_key: str) -> None:
        """Count an opening that failed in a way nobody foresaw; give up after enough of them."""
        count = self._stumbles[session_key] = self._stumbles.get(session_key, 0) + 1
        if count < OPENING_TRIES:
            return
        log.error("the lane %s cannot be opened: what is first there is given up", session_key)
        await write_in_lanes(
            self._store, [session_key], lambda tx: self._opening.give_up(tx, session_key)
        )
        del self._stumbles[session_key]

    async def _think(self, opened: Opened) -> Next:
        attempt = opened.attempt
        if isinstance(opened.next, Ended):
            return opened.next
        begun_s = self._clock.monotonic()
        attempt.used_s = lambda: self._clock.monotonic() - begun_s
        try:
            return await self._until_rest(attempt, opened.next)
        except asyncio.CancelledError:
            await self._leave_at_once(attempt)
            raise

    async def _until_rest(self, attempt: TurnAttempt, next: Next) -> Next:
        """Think until the lane was given back, however that ends."""
        try:
            failpoint("opened")
            return await self._within_limits(attempt, next)
        except StoreFailed:
            raise  # nothing can be written any more: the next start finds the turn as it is
        except STORE_NOT_READY:
            log.warning("the turn %s waits: the store is not ready", attempt.turn.id, exc_info=True)
            attempt.is_stale = True
            await self._clock.sleep(RETRY_S)
            return await self._give_back(attempt, self._turns.leave_for_later)
        except Exception as error:
            failure = error
            log.exception("the turn %s failed", attempt.turn.id)
            return await self._give_back(
                attempt, lambda attempt: self._turns.fail(attempt, failure)
            )

    async def _give_back(
        self, attempt: TurnAttempt, end: Callable[[TurnAttempt], Awaitable[Next]]
    ) -> Next:
        """Give the lane back, however long that takes: it would be held for ever.

        If a turn cannot be ended as it should, though the store is ready, it ends without a word.
        """
        failures, wait_s = 0, RETRY_S
        while True:
            try:
                return await end(attempt)
            except StoreFailed:
                raise
            except STORE_NOT_READY:
                attempt.is_stale = True
                log.warning("the turn %s waits for the store", attempt.turn.id, exc_info=True)
            except Exception:
                failures += 1
                log.exception("the turn %s could not be ended as it should", attempt.turn.id)
            if failures == ENDING_TRIES:
                end = self._turns.give_up
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_RETRY_S)

    async def _leave_at_once(self, attempt: TurnAttempt) -> None:
        """Give the lane back on the way out; if that fails, the next start takes it back."""
        try:
            await self._turns.leave_for_later(attempt)
        except Exception:
            log.warning("the turn %s could not be left", attempt.turn.id, exc_info=True)

    async def _within_limits(self, attempt: TurnAttempt, next: Next) -> Next:
        """Think until the turn rests, is interrupted, or has used up its time."""
        wall_s = limits.wall_s(attempt.turn, attempt.agent.config.limits)
        interrupt = asyncio.timeout(None)
        try:
            async with interrupt:
                with self._interrupts.watching(attempt.turn.id, interrupt):
                    async with time_limit(self._clock, wall_s):
                        return await self._turns.run(attempt, next)
        except TimeoutError:
            if interrupt.expired():
                return await self._turns.end_interrupted(attempt)
            return await self._turns.end_out_of_time(attempt)
