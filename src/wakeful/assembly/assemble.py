"""Assembling: the store, then every room on it, in path order."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.activity.activity import ActivityActs
from wakeful.approvals.acts import ApprovalActs
from wakeful.approvals.answering import Answering
from wakeful.approvals.asking import TIMER_KIND as APPROVAL_TIMER
from wakeful.assembly.automations import AutomationParts, build_automations, keeping
from wakeful.assembly.configured import Configured, Followers
from wakeful.assembly.doors import operator_token
from wakeful.assembly.gate import build_gate
from wakeful.assembly.hooks import all_grants, first_of
from wakeful.assembly.plan import Plan
from wakeful.assembly.views import views_over
from wakeful.automations.jobs import TIMER_KIND as AUTOMATION_TIMER
from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Sender
from wakeful.gate import halts
from wakeful.gate.budget_acts import BudgetActs
from wakeful.gate.parked import RELEASE_TIMER
from wakeful.gate.throttle import Digests
from wakeful.gate.wakes import all_of
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import Deletion
from wakeful.intake.imports import TranscriptImports
from wakeful.intake.inbox_items import TIMER_KIND as EXPIRY_TIMER
from wakeful.intake.inbox_items import InboxItems, forget_expiry
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.lane import LaneRunner
from wakeful.lanes.opening import Opening
from wakeful.lanes.recovery import Recovery
from wakeful.notices.notices import Notices
from wakeful.operations.janitor import Janitor
from wakeful.outbox import outbox
from wakeful.services import Services
from wakeful.settings.places import DATABASE_NAME
from wakeful.settings.settings import Settings
from wakeful.store.database import Store, Tx
from wakeful.store.opening import is_postgres, open_store
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Due, Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.transcript.indexing import Indexer
from wakeful.triggers.beating import TIMER_KIND as HEARTBEAT_TIMER
from wakeful.triggers.beating import Beating
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.daily_turns import DailyTurns
from wakeful.triggers.quiet_acts import QuietActs
from wakeful.triggers.quieting import TIMER_KIND as QUIET_TIMER
from wakeful.triggers.quieting import Quieting
from wakeful.triggers.releasing import Releasing
from wakeful.triggers.sleep_acts import SleepActs
from wakeful.triggers.sleeping import TIMER_KIND as SLEEP_TIMER
from wakeful.triggers.sleeping import Sleeping
from wakeful.triggers.ticking import TIMER_KIND as TICK_TIMER
from wakeful.triggers.ticking import Ticking
from wakeful.turn.commit import TurnDeps
from wakeful.turn.ending import Ending
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.turn import TurnRunner
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft, Receipt
from wakeful.webhooks.table import Webhooks

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
    followers: Followers
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
    agents = Agents(chosen.configs)

    def file(tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        return intake.keep_in(tx, drafts)  # what accepts asks the triggers, and they file

    def refuse(tx: Tx, draft: Draft, reason: str) -> Receipt:
        return intake.refuse_in(tx, draft, reason)

    def workspace_of(agent_id: str) -> Path | None:
        return followers.ready_agents.workspace_of(agent_id)

    webhooks = Webhooks(chosen.hooks, clock, plan.metrics)
    blocks = ProactiveBlocks(agents, chosen.bindings)
    ticking = Ticking(blocks, file)
    sleeping = Sleeping(bus, file, ticking.on_sleep)
    beating = Beating(agents, bus, file, refuse, workspace_of)
    beating.follow(settings.zone)
    notices = Notices(bus, ids)
    answering = Answering(bus, notices, file)
    automations = build_automations(store, bus, ids, clock, agents, file, beating)
    gate = build_gate(
        agents,
        lambda: followers.ready_agents,
        bus,
        notices,
        settings.zone,
        all_of(DailyTurns(blocks, notices, plan.metrics).may_wake, hooks.may_wake),
    )
    quieting = Quieting(gate.quiet, agents, bus, clock, file, sleeping.look_again)
    releasing = Releasing(bus, sleeping)
    settlement = Settlement(
        bus,
        (
            ticking.on_settled,
            sleeping.on_settled,
            beating.on_settled,
            answering.on_settled,
            automations.finishing.on_settled,
            forget_expiry,
            *hooks.on_settled,
        ),
    )
    ending = Ending(
        bus,
        ids,
        settlement,
        gate.budgets,
        (
            ticking.on_ended,
            sleeping.on_ended,
            beating.on_ended,
            automations.finishing.on_ended,
            *hooks.on_ended,
        ),
    )
    intake = Intake(
        store,
        bus,
        ids,
        agents,
        chosen.rules,
        chosen.bindings,
        settlement=settlement,
        may_wake=gate.may_wake,
    )
    automation_acts = automations.acts(
        store, chosen, settlement, lambda name: followers.sender.knows(name)
    )
    deps = TurnDeps(
        bus=bus,
        ids=ids,
        ending=ending,
        settlement=settlement,
        gate=gate,
        queue_settings_of=intake.queue.of,
        file=intake.accept_in,
        grants_of=all_grants(webhooks.grants_of, hooks.grants_of),
        reports_to=first_of(automations.finishing.reports_to, hooks.reports_to),
        proactive_of=blocks.of,
        answering=answering,
        automations=automation_acts,
    )

    views = views_over(store, bus, clock, chosen.bindings, chosen.cards, agents, gate.budgets.days)
    services = Services(
        views=views,
        ids=ids,
        metrics=plan.metrics,
        intake=intake,
        activity=ActivityActs(store, bus),
        acts=SessionActs(
            store, bus, ids, chosen.catalog.find, intake.follow_queue, answering.cancel_all
        ),
        approval_acts=ApprovalActs(store, ids, answering),
        compactions=Compactions(store, bus, ids, intake),
        sleep_acts=SleepActs(store, ids, sleeping, blocks),
        heartbeats=automations.heartbeats,
        budget_acts=BudgetActs(store, ids, clock, agents, gate.budgets),
        quiet_acts=QuietActs(store, clock, ids, agents, quieting),
        inbox_items=InboxItems(store, settlement),
        deletion=Deletion(
            store,
            bus,
            ids,
            clock,
            settlement,
            ending.end_turn,
            keeping,
            on_deleted=(ticking.on_deleted, answering.cancel_all, automation_acts.on_deleted),
        ),
        automations=automation_acts,
        imports=TranscriptImports(store, bus, ids, chosen.bindings),
        credentials=Credentials(store, ids),
        gatekeeper=Gatekeeper(store, clock),
        webhooks=webhooks,
    )
    followers = _followers(plan, chosen, agents, services, deps, beating, automations)
    stack.push_async_callback(followers.ready_agents.aclose)
    loops: dict[str, Service] = {
        "dispatcher": followers.dispatcher,
        "timekeeper": Timekeeper(
            store,
            bus,
            clock,
            {
                "stimulus": _stimulus_timers(intake),
                SLEEP_TIMER: TimerKind(sleeping.fire),
                TICK_TIMER: TimerKind(ticking.fire),
                HEARTBEAT_TIMER: TimerKind(beating.fire, beating.prepare),
                QUIET_TIMER: TimerKind(quieting.fire),
                RELEASE_TIMER: TimerKind(releasing.fire),
                AUTOMATION_TIMER: TimerKind(
                    automations.scheduling.fire, automations.scheduling.prepare
                ),
                APPROVAL_TIMER: TimerKind(answering.fire),
                EXPIRY_TIMER: TimerKind(services.inbox_items.fire),
            },
            lambda timer: (lane_rows.lock(timer.target), halts.ASKING),
        ),
        "sender": followers.sender,
        "indexer": Indexer(store, clock),
        "janitor": followers.janitor,
        "deletion": services.deletion,
    }

    async def reconcile() -> None:
        await _open_activity(services, agents)
        for trigger in (ticking, beating, quieting, releasing, automations.scheduling):
            await trigger.reconcile(store, agents.ids())

    if plan.http is None:
        return Assembled(services=services, followers=followers, loops=loops, reconcile=reconcile)
    operator = await operator_token(services.credentials, plan.http, settings.home)
    http = plan.http.open(services)
    stack.callback(http.close)
    return Assembled(
        services=services,
        followers=followers,
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
    agents: Agents,
    services: Services,
    deps: TurnDeps,
    beating: Beating,
    automations: AutomationParts,
) -> Followers:
    """Build what thinks, sends and sweeps by what was chosen."""
    clock, store, bus = plan.clock, services.views.store, services.views.bus
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
        beating=beating,
        scheduling=automations.scheduling,
        automations=services.automations,
        sender=Sender(
            store,
            bus,
            clock,
            Digests(bus, deps.ids, deps.gate.budgets),
            chosen.doors,
            on_undelivered=automations.finishing.on_undelivered,
        ),
        janitor=Janitor(store, bus, clock, chosen.settings.retention),
        webhooks=services.webhooks,
    )


async def _open_store(settings: Settings, clock: Clock) -> Store:
    database, home = settings.database, settings.home
    if is_postgres(database):
        return await open_store(database, clock=clock)
    return await open_store(home / DATABASE_NAME if home else None, clock=clock)


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
