"""A forecast, built: the engine of a runtime over a copy in memory, driven by a virtual clock."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace as with_fields
from functools import partial
from typing import Any

from msgspec.structs import replace

from wakeful.assembly.configured import Configured, configured
from wakeful.assembly.engine import Ground, build_engine, locks_of_timer
from wakeful.assembly.hooks import NO_HOOKS, Hooks
from wakeful.assembly.plan import Plan
from wakeful.forecast import assumptions, copying
from wakeful.forecast.account import Account, HeardBus
from wakeful.forecast.assumptions import Assumptions
from wakeful.forecast.copying import Copied
from wakeful.forecast.forecast import ForecastLoop, VirtualClock, end_open, when_looked_at
from wakeful.forecast.sources import source_of
from wakeful.lanes.assumed import AssumedTurns
from wakeful.models.model import Model
from wakeful.models.remote import Remote
from wakeful.models.tariffs import tariffs_of
from wakeful.models.windows import NOTHING_STATED
from wakeful.settings.settings import Settings
from wakeful.store.at_once import StoreAtOnce
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.triggers.beating import TIMER_KIND as HEARTBEAT_TIMER
from wakeful.turn.agent import Agent
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput, NotFound, TooOften
from wakeful.vocabulary.forecast import (
    DAY_MS,
    MOST_DAYS,
    USUAL_DAYS,
    Assumption,
    Forecast,
    ForecastRow,
)
from wakeful.vocabulary.hours import LOCAL
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import Usage

LONGEST_S = 60.0  # a forecast that takes longer ends before its time, and says when
MOST_AT_ONCE = 5  # one that is made, and those that wait for it; a thread of Python is not free


class Forecaster:
    """Tells what the schedule will do; nothing is written, and nobody else waits for it."""

    def __init__(
        self, store: Store, clock: Clock, chosen: Configured, hooks: Hooks = NO_HOOKS
    ) -> None:
        self._store = store
        self._clock = clock
        self._chosen = chosen
        self._hooks = hooks
        self._busy = asyncio.Lock()  # one at a time: each takes a thread, and a copy in memory
        self._asked = 0

    def follow(self, chosen: Configured) -> None:
        """Go by other settings from now on."""
        self._chosen = chosen

    async def __call__(self, days: int = USUAL_DAYS, agent: str | None = None) -> Forecast:
        """Return what comes in so many days, of all agents or of one."""
        if not 1 <= days <= MOST_DAYS:
            raise InvalidInput("days", f"must be from 1 to {MOST_DAYS}, not {days}")
        chosen = self._chosen
        if agent is not None and agent not in chosen.configs:
            raise NotFound("agent", f"no agent {agent!r}")
        agent_ids = sorted(chosen.configs) if agent is None else [agent]
        if self._asked >= MOST_AT_ONCE:
            rule = f"{self._asked} forecasts are asked for already: ask again when they are made"
            raise TooOften(rule, retry_after_s=LONGEST_S)
        self._asked += 1
        try:
            async with self._busy:
                return await self._made(chosen, agent_ids, days)
        finally:
            self._asked -= 1

    async def _made(self, chosen: Configured, agent_ids: Sequence[str], days: int) -> Forecast:
        now = self._clock.now()
        clock = VirtualClock(now)
        copy = await asyncio.to_thread(StoreAtOnce, clock)
        wanted = [key for one in agent_ids for key in (keys.main(one), keys.activity(one))]
        copied = await copying.read(self._store, copy, wanted, now)
        usual = await assumptions.read(self._store, now)
        patience = _Patience(self._clock)
        work = _Work(copy, clock, chosen, self._hooks, usual, agent_ids, copied)
        loop = asyncio.get_running_loop()
        until = now + days * DAY_MS
        making = loop.run_in_executor(None, work.forecast, until, patience.is_over)
        try:
            await asyncio.wait([making])
            return making.result()
        finally:
            # Whoever asked may be gone: no other forecast begins before this thread has ended.
            patience.lose()
            await asyncio.wait([making])


def looked_at(agents: Sequence[Agent], settings: Settings, clock: Clock) -> Configured:
    """Return what was chosen as far as a forecast needs it: nobody is asked, so nobody needs keys.

    For whoever reads a database without a server; servers of tools are left out.
    """
    plan = Plan(
        settings=replace(settings, outbound={}, hooks={}, mcp_servers={}),
        agents={agent.id: _unasked(agent, settings) for agent in agents},
        doors={},
        http=None,
        clock=clock,
        metrics=Metrics(),
    )
    return configured(plan)


def _unasked(agent: Agent, settings: Settings) -> Agent:
    """Return an agent whose models are known by name and price alone."""
    silent = copy(agent)
    silent.mcp = ()
    silent.model = _silent(agent.model, settings)
    silent.fallback_models = tuple(_silent(one, settings) for one in agent.fallback_models)
    return silent


def _silent(model: str | Model, settings: Settings) -> str | Model:
    if not isinstance(model, str) or model == "demo":
        return model
    return Remote(model, stated=settings.models.get(model, NOTHING_STATED))


class _Patience:
    """Whether somebody still waits for a forecast: for so long, and no longer than they wish."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.monotonic() + LONGEST_S
        self._is_lost = threading.Event()

    def lose(self) -> None:
        self._is_lost.set()

    def is_over(self) -> bool:
        return self._is_lost.is_set() or self._clock.monotonic() > self._until


class _Work:
    """One forecast, in a thread of its own."""

    # What it is made of.
    def __init__(
        self,
        store: StoreAtOnce,
        clock: VirtualClock,
        chosen: Configured,
        hooks: Hooks,
        usual: Assumptions,
        agent_ids: Sequence[str],
        copied: Copied,
    ) -> None:
        self._store = store
        self._clock = clock
        self._chosen = chosen
        self._usual = usual
        self._agent_ids = agent_ids
        self._copied = copied
        self._account = Account(partial(when_looked_at, store))
        self._ready_agents = ReadyAgents(chosen.ready_agents, chosen.catalog.resolve_one)
        ids = Ids(clock)
        self._bus = HeardBus(store, ids, heard=self._account.hear)
        ground = Ground(store=store, bus=self._bus, ids=ids, clock=clock, metrics=Metrics())
        self._engine = build_engine(
            ground, chosen, hooks, lambda: self._ready_agents, _knows_every_door
        )
        self._turns = AssumedTurns(
            self._engine.deps, self._ready_agents, usual, self._account.answered
        )

    def forecast(self, until: int, is_enough: Callable[[], bool]) -> Forecast:
        since = self._clock.now()
        try:
            copying.fill(self._store, self._copied, frozenset(self._agent_ids))
            end_open(self._store, self._turns)
            asyncio.run(self._reconcile())
            reached = self._loop().run(until, is_enough)
        finally:
            self._store.close_now()
        rows = self._account.rows(self._turn_ms)
        return Forecast(
            since=since,
            until=reached,
            zone=self._chosen.settings.timezone or LOCAL,
            assumptions=tuple(map(self._assumption, rows)),
            rows=tuple(rows),
            timeline=tuple(self._account.lines),
        )

    async def _reconcile(self) -> None:
        """Set what a start would set: the settings may have changed while nobody ran them."""
        for agent_id in self._agent_ids:
            await self._engine.intake.open_activity(agent_id)
        for trigger in self._engine.triggers:
            await trigger.reconcile(self._store, self._agent_ids)

    def _loop(self) -> ForecastLoop:
        engine, account = self._engine, self._account
        waiting = self._store.look("SELECT id, kind, source FROM stimuli")
        account.begin((row[0], source_of(Kind(row[1]).origin, row[2])) for row in waiting)
        kinds = _looked_up_once(engine.timer_kinds)
        keeper = Timekeeper(self._store, self._bus, self._clock, kinds, locks_of_timer)
        pools = list(self._chosen.pools)
        return ForecastLoop(
            self._store, self._clock, kinds, keeper.firing, self._turns, account, pools
        )

    def _turn_ms(self, agent_id: str, source: str) -> int:
        return self._usual.of(agent_id, source).turn_ms

    def _assumption(self, row: ForecastRow) -> Assumption:
        usual = self._usual.of(row.agent_id, row.source)
        first = self._account.first.get((row.agent_id, row.source))
        agent = self._ready_agents.get(row.agent_id)
        read = usual.input if first is None else first.input
        if read is None:
            read = 0 if agent is None else agent.fixed_tokens
        written = usual.output if first is None else first.output
        price = None if agent is None else tariffs_of(agent.model)[0].price
        cost = None if price is None else price.cost(Usage(input=read, output=written))
        return Assumption(
            agent_id=row.agent_id,
            source=row.source,
            turn_s=usual.turn_ms / 1000,
            input=read,
            output=written,
            cost=cost if first is None else first.cost,
            basis=usual.basis,
        )


def _knows_every_door(_name: str) -> bool:
    return True


def _looked_up_once(kinds: Mapping[str, TimerKind[Any]]) -> Mapping[str, TimerKind[Any]]:
    """Return the kinds of timers; the file of a heartbeat is looked at once, as it is now."""
    heart = kinds[HEARTBEAT_TIMER]
    assert heart.prepare is not None
    return {**kinds, HEARTBEAT_TIMER: with_fields(heart, prepare=_once(heart.prepare))}


def _once(prepare: Callable[[Timer], Any]) -> Callable[[Timer], Any]:
    known: dict[str, Any] = {}

    def prepared(timer: Timer) -> Any:
        if timer.id not in known:
            known[timer.id] = prepare(timer)
        return known[timer.id]

    return prepared
