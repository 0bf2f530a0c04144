"""The dispatcher: gives ready lanes a task, a bounded number at once in each pool."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from wakeful.broker import lane_rows
from wakeful.lanes import clock_rollback
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.lane import STORE_NOT_READY, LaneRunner
from wakeful.lanes.pool import Hint, Pool
from wakeful.lanes.recovery import Recovery
from wakeful.store.database import Store
from wakeful.turns import turns
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.clock import Clock, ClockRollbacks, wait_until
from wakeful.vocabulary.errors import StoreFailed

LOOK_EVERY_MS = 60_000  # a lost notification costs at most this
CHECK_EVERY_MS = 60_000  # as long a lane may be held without a task
PEOPLES_POOL = "main"  # whose sessions people talk in
RETRY_MS = 1_000  # after the store could not answer

log = logging.getLogger(__name__)


class Dispatcher:
    """A service that runs lanes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: LaneRunner,
        recovery: Recovery,
        interrupts: Interrupts,
        owner: str,
        pools: Mapping[str, int],
    ) -> None:
        self._store = store
        self._clock = clock
        self._runner = runner
        self._recovery = recovery
        self._interrupts = interrupts
        self._owner = owner
        agents = len(recovery.agent_ids)
        self._pools = {
            name: Pool(limit, agents, is_for_people=name == PEOPLES_POOL)
            for name, limit in pools.items()
        }
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, bool] = {}  # lanes that run, ready again: whether in no hurry
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._next_look = 0
        self._next_check = 0
        self._rollbacks = ClockRollbacks()
        self._is_draining = False

    async def run(self) -> None:
        undo = [
            self._store.listen(lane_rows.READY, self._on_ready),
            self._store.listen(lane_rows.READY_LATER, partial(self._on_ready, is_later=True)),
            self._store.listen(lane_rows.DUE, self._on_due),
            self._store.listen(turns.INTERRUPT, self._interrupts.raise_on),
        ]
        try:
            await self._recover()
            async with asyncio.TaskGroup() as group:
                while True:
                    self._changed.clear()
                    await self._start_ready(group)
                    await wait_until(self._clock, self._next_look, self._changed)
        finally:
            for unlisten in undo:
                unlisten()

    async def _recover(self) -> None:
        """Take back what the last process held, as soon as the store lets us."""
        while True:
            try:
                self._rollbacks = ClockRollbacks(await self._recovery.run())
                return
            except STORE_NOT_READY:
                log.warning("recovery waits: the store is not ready", exc_info=True)
                await self._clock.sleep(RETRY_MS / 1000)

    def follow(self, pools: Mapping[str, int]) -> None:
        """Run as many lanes as other pools have; what runs beyond that ends by itself."""
        for name, limit in pools.items():
            self._pools[name].limit = limit
            self._pools[name].must_scan = True
        self._changed.set()

    @property
    def tasks(self) -> frozenset[asyncio.Task[None]]:
        """The lanes that run now."""
        return frozenset(self._running.values())

    async def drain(self) -> None:
        """Claim nothing more and return when no lane runs."""
        self._is_draining = True
        await self._idle.wait()

    async def _start_ready(self, group: asyncio.TaskGroup) -> None:
        if self._is_draining:
            self._next_look = self._clock.now() + LOOK_EVERY_MS
            return
        now = self._clock.now()
        if self._rollbacks.was_moved_back(now):
            await self._make_up(now)
            self._next_look = self._next_check = now
        if now >= self._next_check:
            await self._find_stranded(now)
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY_MS
            for pool in self._pools.values():
                pool.must_scan = True
        for name, pool in self._pools.items():
            if pool.must_scan and pool.free > 0:
                await self._scan(name, pool)
            while not self._is_draining and (hint := pool.next_hint()) is not None:
                if keys.agent_of(hint.session_key) not in pool.closed_to():
                    self._start(group, pool, hint)

    async def _make_up(self, now: int) -> None:
        """Let nothing wait for as long as the wall clock was moved back."""
        try:
            count = await clock_rollback.make_up(self._store, now)
        except STORE_NOT_READY:
            log.warning("lanes wait for a clock that was moved back", exc_info=True)
            self._rollbacks.suspect()  # once more at the next look
        else:
            log.warning("the wall clock was moved back; %d lanes no longer wait for it", count)

    async def _find_stranded(self, now: int) -> None:
        """Look for lanes that are held for tasks that are no more: whoever runs them frees them."""
        self._next_check = now + CHECK_EVERY_MS
        try:
            rows = await self._store.read(lane_rows.OWNED, owner=self._owner)
        except STORE_NOT_READY:
            log.warning("looking for stranded lanes waits", exc_info=True)
            return
        for (session_key,) in rows:
            if session_key not in self._running:
                log.error("the lane %s was held without a task; it goes on now", session_key)
                self._pools[keys.pool_of(session_key)].hint(session_key)

    async def _scan(self, name: str, pool: Pool) -> None:
        """Ask the ledger which lanes are due; more than can run are left for the next look."""
        pool.must_scan = False  # what asks for another one meanwhile is not forgotten
        try:
            await self._scan_for(name, pool, is_later=False)
            if pool.takes_later:
                await self._scan_for(name, pool, is_later=True)
            else:
                pool.hold_back()
        except STORE_NOT_READY:
            log.warning("lanes wait: the store is not ready", exc_info=True)
            pool.must_scan = True
            self._next_look = self._clock.now() + RETRY_MS

    async def _scan_for(self, name: str, pool: Pool, *, is_later: bool) -> None:
        now = self._clock.now()
        limit = pool.free + 1
        rows = await self._store.read(
            lane_rows.READY_LANES,
            pool=name,
            is_later=int(is_later),
            closed_to=pool.closed_to(),
            limit=limit,
        )
        due = [row[0] for row in rows if row[1] <= now]
        # More may be due than were asked for, though there is room for all of these by now.
        pool.must_scan = pool.must_scan or len(due) == limit
        for session_key in due:
            pool.hint(session_key, is_later=is_later)
        if len(due) < len(rows):
            self._next_look = min(self._next_look, rows[len(due)][1])

    def _start(self, group: asyncio.TaskGroup, pool: Pool, hint: Hint) -> None:
        session_key = hint.session_key
        if session_key in self._running:
            self._again[session_key] = False
            return
        pool.take(keys.agent_of(session_key))
        self._idle.clear()
        running = self._run_lane(session_key, yields=hint.yields)
        task = group.create_task(running, name=f"lane {session_key}")
        self._running[session_key] = task
        task.add_done_callback(lambda _: self._finished(pool, session_key))

    def _finished(self, pool: Pool, session_key: str) -> None:
        del self._running[session_key]
        pool.give_back(keys.agent_of(session_key))
        if (is_later := self._again.pop(session_key, None)) is not None:
            pool.hint(session_key, is_later=is_later)
        if not self._running:
            self._idle.set()
        if pool.has_hints or pool.must_scan:
            self._changed.set()

    async def _run_lane(self, session_key: str, *, yields: bool) -> None:
        try:
            await self._runner.run(session_key, yields=yields)
        except StoreFailed:
            log.error("the lane %s stops: the store has failed", session_key)
        except Exception:
            # A lane must never take the others down; it is looked at again later.
            log.exception("the lane %s could not run", session_key)
            self._next_look = min(self._next_look, self._clock.now() + RETRY_MS)
            self._changed.set()

    def _on_ready(self, session_key: str, *, is_later: bool = False) -> None:
        pool = self._pools[keys.pool_of(session_key)]
        if session_key in self._running:
            self._again[session_key] = is_later and self._again.get(session_key, True)
        else:
            pool.hint(session_key, is_later=is_later)
            if pool.takes_later if is_later else pool.free > 0:
                self._changed.set()

    def _on_due(self, due_at: str) -> None:
        self._next_look = min(self._next_look, int(due_at))
        self._changed.set()
