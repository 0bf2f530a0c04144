"""Assembling: the store, then every room on it, in path order."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from random import Random

import msgspec

from wakeful.access.credentials import Credentials
from wakeful.assembly.assembly import Assembly
from wakeful.assembly.doors import webhook_doors, with_door
from wakeful.assembly.minds import mcp_servers, mind_of, refuse_open_homes
from wakeful.assembly.plan import DATABASE_NAME, Plan
from wakeful.broker import lanes
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
from wakeful.settings.settings import Settings
from wakeful.store.database import Store, Tx
from wakeful.store.opening import is_postgres, open_store
from wakeful.timers.timekeeper import Handler, Timekeeper
from wakeful.timers.timers import Timer
from wakeful.transcript.indexing import Indexer
from wakeful.turn.ending import Ending
from wakeful.turn.minds import Minds
from wakeful.turn.record import Recorder
from wakeful.turn.sheet import Pen
from wakeful.turn.turn import Thinker
from wakeful.views.lanes import LaneView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft

_drafts = msgspec.json.Decoder(Draft)


async def assemble(plan: Plan, stack: AsyncExitStack) -> Assembly:
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
    minds = {agent.id: mind_of(agent, servers, plan.clock) for agent in plan.agents.values()}
    voices = Minds(minds, lambda name, limits: voice([name], limits, clock))
    stack.push_async_callback(voices.aclose)
    agents = Agents({agent_id: mind.config for agent_id, mind in minds.items()})
    intake = Intake(
        store, bus, ids, agents, _intake_rules(settings), _bindings(settings, agents, plan)
    )
    dispatcher = _engine(plan, store, bus, ids, intake, voices)
    deletion = Deletion(store, bus, clock, Ending(bus, ids).end_turn, _no_automations)
    timekeeper = Timekeeper(
        store,
        bus,
        clock,
        {"stimulus": _stimulus_timers(intake)},
        lanes.lock,
        more_locks=[halts.ASKING],
    )
    sender = Sender(store, bus, clock, {**plan.doors, **webhook_doors(settings.outbound, clock)})
    assembly = Assembly(
        store=store,
        bus=bus,
        ids=ids,
        credentials=Credentials(store, ids),
        intake=intake,
        compactions=Compactions(store, bus, ids, intake),
        acts=SessionActs(store, bus, ids, find),
        deletion=deletion,
        dispatcher=dispatcher,
        turns=TurnView(store, bus, clock),
        transcripts=TranscriptView(store),
        lanes=LaneView(store, clock),
        services={
            "dispatcher": dispatcher,
            "timekeeper": timekeeper,
            "sender": sender,
            "indexer": Indexer(store, clock),
            "janitor": Janitor(store, bus, clock, **msgspec.structs.asdict(settings.retention)),
            "deletion": deletion,
            **{f"mcp {name}": server for name, server in servers.items()},
        },
    )
    if plan.http is None:
        return assembly
    return await with_door(assembly, plan, plan.http, minds, stack)


# Each is a room of its own, or what the operator chose.
def _engine(
    plan: Plan, store: Store, bus: Bus, ids: Ids, intake: Intake, minds: Minds
) -> Dispatcher:
    """Build what thinks: lanes, and turns in them."""
    clock = plan.clock
    pen = Pen(
        bus=bus,
        ids=ids,
        ending=Ending(bus, ids),
        queue_settings_of=intake.acceptance.queue_settings,
        file=intake.accept_in,
    )
    interrupts = Interrupts()
    owner = ids.new("node")
    runner = LaneRunner(
        store,
        clock,
        Opening(pen, minds, owner),
        Thinker(store, bus, Recorder(pen), clock, Random(), plan.metrics, plan.settings.timezone),
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


def _stimulus_timers(intake: Intake) -> Handler:
    def fire(tx: Tx, timer: Timer, now: int) -> None:
        """File the stimulus that a timer carries."""
        draft = _drafts.decode(timer.payload)
        if draft.session_key != timer.target:
            raise InvalidInput("session_key", "a timer files stimuli for its target only")
        intake.accept_in(tx, [draft])

    return fire
