"""Assembling: the store, then every room on it, in path order."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

from wakeful.access.credentials import Credentials, Made
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.activity.activity import ActivityActs
from wakeful.approvals.acts import ApprovalActs
from wakeful.assembly.automations import keeping
from wakeful.assembly.configured import Configured, Followers
from wakeful.assembly.doors import operator_token
from wakeful.assembly.engine import Engine, Ground, build_engine, locks_of_timer
from wakeful.assembly.forecasting import Forecaster
from wakeful.assembly.plan import Plan
from wakeful.assembly.views import views_over
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Sender
from wakeful.gate.budget_acts import BudgetActs
from wakeful.gate.throttle import Digests
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import Deletion
from wakeful.intake.imports import TranscriptImports
from wakeful.intake.sessions import SessionActs
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.lane import LaneRunner
from wakeful.lanes.opening import Opening
from wakeful.lanes.recovery import Recovery
from wakeful.operations.janitor import Janitor
from wakeful.outbox import outbox
from wakeful.services import Services
from wakeful.settings.places import DATABASE_NAME
from wakeful.settings.settings import Settings
from wakeful.store.database import Store
from wakeful.store.opening import is_postgres, open_store
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Timekeeper
from wakeful.transcript.indexing import Indexer
from wakeful.triggers.quiet_acts import QuietActs
from wakeful.triggers.sleep_acts import SleepActs
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.turn import TurnRunner
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.ids import Ids

if TYPE_CHECKING:
    from wakeful.doors.http.server import HttpServer


class Service(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """A runtime that is built and does not run yet."""

    services: Services
    followers: Followers
    forecaster: Forecaster
    loops: Mapping[str, Service]  # what must run
    reconcile: Callable[[], Awaitable[None]]  # set what the agents' settings want to be due
    http: "HttpServer | None" = None
    operator: Made | None = None  # the token in the home folder, if there is a door


async def assemble(plan: Plan, chosen: Configured, stack: AsyncExitStack) -> Assembled:
    """Open the store and build every room on it; the stack closes what was opened."""
    clock, settings, hooks = plan.clock, plan.settings, plan.hooks
    ids = Ids(clock)
    store = await _open_store(settings, clock)
    stack.push_async_callback(store.close)
    bus = await _open_bus(store, ids, plan.metrics)
    engine = build_engine(
        Ground(store=store, bus=bus, ids=ids, clock=clock, metrics=plan.metrics),
        chosen,
        hooks,
        lambda: followers.ready_agents,
        lambda name: followers.sender.knows(name),
    )
    agents, budgets = engine.agents, engine.deps.gate.budgets
    forecaster = Forecaster(store, clock, chosen, hooks)

    views = views_over(store, bus, clock, chosen.bindings, chosen.cards, agents, budgets.days)
    services = Services(
        views=views,
        ids=ids,
        metrics=plan.metrics,
        intake=engine.intake,
        activity=ActivityActs(store, bus),
        acts=SessionActs(
            store,
            bus,
            ids,
            chosen.catalog.find,
            engine.intake.follow_queue,
            engine.answering.cancel_all,
        ),
        approval_acts=ApprovalActs(store, ids, engine.answering),
        compactions=Compactions(store, bus, ids, engine.intake),
        sleep_acts=SleepActs(store, ids, engine.sleeping, engine.blocks),
        heartbeats=engine.automations.heartbeats,
        budget_acts=BudgetActs(store, ids, clock, agents, budgets),
        quiet_acts=QuietActs(store, clock, ids, agents, engine.quieting),
        inbox_items=engine.inbox_items,
        deletion=Deletion(
            store,
            bus,
            ids,
            clock,
            engine.settlement,
            engine.ending.end_turn,
            keeping,
            on_deleted=(
                engine.ticking.on_deleted,
                engine.answering.cancel_all,
                engine.deps.automations.on_deleted,
            ),
        ),
        automations=engine.deps.automations,
        imports=TranscriptImports(store, bus, ids, chosen.bindings),
        credentials=Credentials(store, ids),
        gatekeeper=Gatekeeper(store, clock),
        webhooks=engine.webhooks,
        forecast=forecaster,
    )
    followers = _followers(plan, chosen, services, engine)
    stack.push_async_callback(followers.ready_agents.aclose)
    loops: dict[str, Service] = {
        "dispatcher": followers.dispatcher,
        "timekeeper": Timekeeper(store, bus, clock, engine.timer_kinds, locks_of_timer),
        "sender": followers.sender,
        "indexer": Indexer(store, clock),
        "janitor": followers.janitor,
        "deletion": services.deletion,
    }

    async def reconcile() -> None:
        await _open_activity(services, agents)
        for trigger in engine.triggers:
            await trigger.reconcile(store, agents.ids())

    if plan.http is None:
        return Assembled(
            services=services,
            followers=followers,
            forecaster=forecaster,
            loops=loops,
            reconcile=reconcile,
        )
    operator = await operator_token(services.credentials, plan.http, settings.home)
    http = plan.http.open(services)
    stack.callback(http.close)
    return Assembled(
        services=services,
        followers=followers,
        forecaster=forecaster,
        loops={**loops, "http": http},
        reconcile=reconcile,
        http=http,
        operator=operator,
    )


async def _open_bus(store: Store, ids: Ids, metrics: Metrics) -> Bus:
    """Take up the numbers of events, and of what leaves, where the last process left them."""
    bus = Bus(store, ids, metrics)
    await bus.start()
    if (newest := await outbox.newest_id(store)) is not None:
        ids.follow(newest)  # deliveries go out in the order of their ids, whatever the clock says
    return bus


async def _open_activity(services: Services, agents: Agents) -> None:
    """Give every agent its Activity session, and a mark of what people have read."""
    await services.activity.open(agents.ids())
    for agent_id in agents.ids():
        await services.intake.open_activity(agent_id)


def _followers(
    plan: Plan,
    chosen: Configured,
    services: Services,
    engine: Engine,
) -> Followers:
    """Build what thinks, sends and sweeps by what was chosen."""
    clock, store, bus = plan.clock, services.views.store, services.views.bus
    agents, deps = engine.agents, engine.deps
    ready_agents = ReadyAgents(chosen.ready_agents, chosen.catalog.resolve_one)
    turns = TurnRunner(store, deps, clock, Random(), plan.metrics, chosen.settings.timezone)
    interrupts, owner = Interrupts(), deps.ids.new("node")
    limits = {agent_id: config.limits for agent_id, config in sorted(chosen.configs.items())}
    return Followers(
        agents=agents,
        bindings=chosen.bindings,
        days=deps.gate.budgets.days,
        intake=services.intake,
        ready_agents=ready_agents,
        catalog=chosen.catalog,
        cards=services.views.agents,
        dispatcher=Dispatcher(
            store,
            clock,
            LaneRunner(store, clock, Opening(deps, ready_agents, owner), turns, interrupts),
            Recovery(store, services.intake, limits),
            interrupts,
            owner,
            chosen.pools,
        ),
        turns=turns,
        beating=engine.beating,
        scheduling=engine.automations.scheduling,
        automations=services.automations,
        sender=Sender(
            store,
            bus,
            clock,
            Digests(bus, deps.ids, deps.gate.budgets),
            chosen.doors,
            on_undelivered=engine.automations.finishing.on_undelivered,
        ),
        janitor=Janitor(store, bus, clock, chosen.settings.retention),
        webhooks=services.webhooks,
    )


async def _open_store(settings: Settings, clock: Clock) -> Store:
    database, home = settings.database, settings.home
    if is_postgres(database):
        return await open_store(database, clock=clock)
    return await open_store(home / DATABASE_NAME if home else None, clock=clock)
