"""Assembling: the store, then every room on it, in path order."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Protocol

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.assembly.doors import operator_token, webhook_doors
from wakeful.assembly.plan import DATABASE_NAME, Plan
from wakeful.assembly.ready_agents import card_of, mcp_servers, ready_agent, refuse_open_homes
from wakeful.assembly.views import views_over
from wakeful.broker import lanes
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Sender
from wakeful.gate import halts
from wakeful.gate.storms import StormLimits
from wakeful.intake.accept import IntakeRules
from wakeful.intake.bindings import Bindings
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import BoundAutomation, Deletion
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.lane import LaneRunner
from wakeful.lanes.opening import Opening
from wakeful.lanes.recovery import Recovery
from wakeful.models.catalog import find, voice
from wakeful.operations.janitor import Janitor
from wakeful.outbox import outbox
from wakeful.services import Services, Views
from wakeful.settings.settings import Settings
from wakeful.store.database import Store, Tx
from wakeful.store.opening import is_postgres, open_store
from wakeful.timers.timekeeper import Due, Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.transcript.indexing import Indexer
from wakeful.turn.commit import TurnDeps
from wakeful.turn.ending import Ending
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.turn import TurnRunner
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft

if TYPE_CHECKING:
    from wakeful.doors.http.server import HttpServer

_drafts = msgspec.json.Decoder(Draft)


class Service(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """A runtime that is built and does not run yet."""

    services: Services
    dispatcher: Dispatcher
    loops: Mapping[str, Service]  # what must run
    http: "HttpServer | None" = None
    operator: Made | None = None  # the token in the home folder, if there is a door


async def assemble(plan: Plan, stack: AsyncExitStack) -> Assembled:
    """Open the store and build every room on it; the stack closes what was opened."""
    refuse_open_homes(plan)
    clock, settings = plan.clock, plan.settings
    ids = Ids(clock)
    store = await _open_store(settings, clock)
    stack.push_async_callback(store.close)
    bus = Bus(store, ids, plan.metrics)
    await bus.start()
    if (newest := await outbox.newest_id(store)) is not None:
        ids.follow(newest)  # deliveries go out in the order of their ids, whatever the clock says
    servers = mcp_servers(plan)
    ready = {agent.id: ready_agent(agent, servers, plan.clock) for agent in plan.agents.values()}
    agents_ready = ReadyAgents(ready, lambda name, limits: voice([name], limits, clock))
    stack.push_async_callback(agents_ready.aclose)
    agents = Agents({agent_id: agent.config for agent_id, agent in ready.items()})
    bindings, hooks = _bindings(settings, agents, plan), plan.hooks
    settlement = Settlement(bus, hooks.on_settled)
    intake = Intake(
        store,
        bus,
        ids,
        agents,
        _intake_rules(settings),
        bindings,
        settlement=settlement,
        may_wake=hooks.may_wake,
    )
    deps = TurnDeps(
        bus=bus,
        ids=ids,
        ending=Ending(bus, ids, settlement, hooks.on_ended),
        settlement=settlement,
        may_wake=hooks.may_wake,
        queue_settings_of=intake.queue.of,
        file=intake.accept_in,
        grants_of=hooks.grants_of,
        reports_to=hooks.reports_to,
    )
    cards = {agent_id: partial(card_of, agent) for agent_id, agent in ready.items()}
    services = _services(plan, views_over(store, bus, clock, bindings, cards), deps, intake)
    dispatcher = _engine(plan, store, deps, intake, agents_ready)
    loops = {
        "dispatcher": dispatcher,
        "timekeeper": Timekeeper(
            store,
            bus,
            clock,
            {"stimulus": _stimulus_timers(intake)},
            lambda timer: (lanes.lock(timer.target), halts.ASKING),
        ),
        "sender": Sender(
            store, bus, clock, {**plan.doors, **webhook_doors(settings.outbound, clock)}
        ),
        "indexer": Indexer(store, clock),
        "janitor": Janitor(store, bus, clock, **msgspec.structs.asdict(settings.retention)),
        "deletion": services.deletion,
        **{f"mcp {name}": server for name, server in servers.items()},
    }
    if plan.http is None:
        return Assembled(services=services, dispatcher=dispatcher, loops=loops)
    operator = await operator_token(services.credentials, plan.http, settings.home)
    http = plan.http.open(services)
    stack.callback(http.close)
    return Assembled(
        services=services,
        dispatcher=dispatcher,
        loops={**loops, "http": http},
        http=http,
        operator=operator,
    )


def _services(plan: Plan, views: Views, deps: TurnDeps, intake: Intake) -> Services:
    store, bus, clock, ids = views.store, views.bus, views.clock, deps.ids
    return Services(
        views=views,
        ids=ids,
        metrics=plan.metrics,
        intake=intake,
        acts=SessionActs(store, bus, ids, find, intake.follow_queue),
        compactions=Compactions(store, bus, ids, intake),
        deletion=Deletion(
            store, bus, clock, deps.settlement, deps.ending.end_turn, _no_automations
        ),
        credentials=Credentials(store, ids),
        gatekeeper=Gatekeeper(store, clock),
    )


def _engine(
    plan: Plan, store: Store, deps: TurnDeps, intake: Intake, agents_ready: ReadyAgents
) -> Dispatcher:
    """Build what thinks: lanes, and turns in them."""
    clock = plan.clock
    interrupts = Interrupts()
    owner = deps.ids.new("node")
    runner = LaneRunner(
        store,
        clock,
        Opening(deps, agents_ready, owner),
        TurnRunner(store, deps, clock, Random(), plan.metrics, plan.settings.timezone),
        interrupts,
    )
    return Dispatcher(
        store,
        clock,
        runner,
        Recovery(store, intake, {id: plan.agents[id].config.limits for id in sorted(plan.agents)}),
        interrupts,
        owner,
        msgspec.structs.asdict(plan.settings.lanes),
    )


async def _open_store(settings: Settings, clock: Clock) -> Store:
    database, home = settings.database, settings.home
    if is_postgres(database):
        return await open_store(database, clock=clock)
    return await open_store(home / DATABASE_NAME if home else None, clock=clock)


def _bindings(settings: Settings, agents: Agents, plan: Plan) -> Bindings:
    for position, binding in enumerate(settings.bindings):
        agents.get(binding.agent, f"bindings[{position}].agent")
    return Bindings(
        settings.bindings,
        default_agent=plan.default_agent,
        dm_scope=settings.dm_scope,
        identity_links=settings.identity_links,
        is_unified=settings.unified,
    )


def _intake_rules(settings: Settings) -> IntakeRules:
    storm = settings.storm
    return IntakeRules(
        queue=settings.queue,
        doors=settings.doors,
        storm=StormLimits(turns=storm.turns, window_s=storm.window_s),
        max_chain_depth=settings.max_chain_depth,
        reset=settings.reset.times(settings.timezone),
    )


def _no_automations(tx: Tx, session_key: str) -> Sequence[BoundAutomation]:
    """Return the automations that are bound to a session: nobody can make one yet."""
    return ()


def _stimulus_timers(intake: Intake) -> TimerKind[None]:
    """Return what timers do that carry a stimulus: it is filed, for an absent agent, too."""

    def fire(tx: Tx, dues: Sequence[Due[None]]) -> None:
        intake.keep_in(tx, [_draft_of(due.timer) for due in dues])

    return TimerKind(fire)


def _draft_of(timer: Timer) -> Draft:
    draft = _drafts.decode(timer.payload)
    if draft.session_key != timer.target:
        raise InvalidInput("session_key", "a timer files stimuli for its target only")
    return draft
