"""A runtime's parts while they run, and how they take other settings without a stop."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import msgspec

from wakeful.assembly.assemble import Assembled, assemble
from wakeful.assembly.configured import Configured, configured
from wakeful.assembly.loops import LoopTasks
from wakeful.assembly.plan import Plan
from wakeful.operations.watchdog import Watchdog
from wakeful.store.database import Store
from wakeful.vocabulary.errors import StoreFailed, StoreRefused, Transient
from wakeful.vocabulary.retrying import retrying

log = logging.getLogger(__name__)

FIXED = ("home", "database")  # settings that only a start can change


class Running:
    """What was built, and the tasks that run it."""

    def __init__(
        self, plan: Plan, chosen: Configured, built: Assembled, tasks: LoopTasks, watch: "_Watch"
    ) -> None:
        self.plan = plan
        self.built = built
        self._chosen = chosen
        self._tasks = tasks
        self._watch = watch
        self._swapping = asyncio.Lock()  # guards plan and servers: one change after the other

    def start(self, *, is_reconciled: bool) -> None:
        if not is_reconciled:
            again = retrying(self.plan.clock, "reconcile", self.built.reconcile)
            self._tasks.start("reconcile", again)
        for name, service in self.built.loops.items():
            self._tasks.start(name, service.run())
        for name, server in self._chosen.servers.items():
            self._tasks.start(f"mcp {name}", server.run())
        self._tasks.start("store watch", _watch_store(self.built.services.views.store))

    def leave(self) -> None:
        """End every service at once; what was going on goes on at the next start."""
        self._tasks.cancel()

    async def take(self, wanted: Plan) -> Sequence[str]:
        """Work by another plan from now on; return the settings that stay as they are.

        Raises before anything is changed if the plan could not work.
        """
        async with self._swapping:
            was = self.plan.settings
            kept = [name for name in FIXED if getattr(wanted.settings, name) != getattr(was, name)]
            fixed = {name: getattr(was, name) for name in FIXED}
            settings = msgspec.structs.replace(wanted.settings, **fixed)
            plan = replace(wanted, settings=settings)
            self._swap(plan, configured(plan, self._chosen.servers))
        await self._release(plan)
        return kept

    async def _release(self, plan: Plan) -> None:
        """Let agents that are back go on with what was left for them, or is due to them."""
        try:
            await self.built.reconcile()
            for agent_id in plan.agents:
                await self.built.services.intake.release(agent_id)
        except StoreFailed:
            raise
        except Exception:
            log.warning("what waits for an agent goes on at the next start", exc_info=True)

    def _swap(self, plan: Plan, chosen: Configured) -> None:
        """Let everybody follow at once; what was needed until now goes with the last who use it."""
        followers, before = self.built.followers, self._chosen.servers
        under_way = followers.dispatcher.tasks
        left = followers.follow(chosen)
        self.built.forecaster.follow(chosen)
        self.plan, self._chosen = plan, chosen
        self._watch.follow(plan.settings.watchdog_s)
        for name in before.keys() | chosen.servers.keys():
            new = chosen.servers.get(name)
            if before.get(name) is not new:
                self._tasks.retire(f"mcp {name}", under_way)
                if new is not None:
                    self._tasks.start(f"mcp {name}", new.run())
        self._tasks.after(under_way, partial(followers.ready_agents.close, left))


class _Watch:
    """The watchdog over the event loop, if the settings want one."""

    def __init__(self, plan: Plan) -> None:
        self._clock, self._metrics = plan.clock, plan.metrics
        self._watchdog: Watchdog | None = None

    def follow(self, limit_s: float) -> None:
        """Watch for silences of another length from now on; 0: not at all."""
        if self._watchdog is not None and self._watchdog.limit_s == limit_s:
            return
        self.stop()
        if limit_s:
            self._watchdog = Watchdog(self._clock, self._metrics, limit_s)
            self._watchdog.start()

    def stop(self) -> None:
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None


async def start(plan: Plan, stack: AsyncExitStack) -> Running:
    """Build what a plan says and run it; the stack ends it again."""
    chosen = configured(plan)
    watch = _Watch(plan)
    stack.callback(watch.stop)
    watch.follow(plan.settings.watchdog_s)
    built = await assemble(plan, chosen, stack)
    is_reconciled = await _is_reconciled(built)
    group = await stack.enter_async_context(asyncio.TaskGroup())
    running = Running(plan, chosen, built, LoopTasks(group), watch)
    running.start(is_reconciled=is_reconciled)
    return running


async def _is_reconciled(built: Assembled) -> bool:
    """Set what should be due; a full or read-only store keeps nobody from starting."""
    try:
        await built.reconcile()
    except (Transient, StoreRefused):
        log.warning("what wakes by itself is set later", exc_info=True)
        return False
    return True


async def _watch_store(store: Store) -> None:
    await store.wait_failed()
    raise StoreFailed
