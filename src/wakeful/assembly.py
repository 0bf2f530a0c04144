"""Builds every room in path order; the runtime runs what comes out."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.broker import lanes
from wakeful.bus.bus import Bus
from wakeful.commands.command import Reach
from wakeful.commands.commands import Commands
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.sender import Door, Sender
from wakeful.doors.signing import read_keys
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
from wakeful.net.addresses import NOBODY, allow
from wakeful.net.target import parse
from wakeful.operations.janitor import Janitor
from wakeful.outbox import outbox
from wakeful.settings.settings import OutboundSettings, Settings
from wakeful.store.database import Store, Tx
from wakeful.store.opening import is_postgres, open_store
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Handler, Timekeeper
from wakeful.timers.timers import Timer
from wakeful.tools.builtin import default_tools
from wakeful.tools.mcp.server import McpServer
from wakeful.tools.toolbox import Toolbox
from wakeful.transcript.indexing import Indexer
from wakeful.turn.agent import Agent, Mind
from wakeful.turn.ending import Ending
from wakeful.turn.minds import Minds
from wakeful.turn.record import Recorder
from wakeful.turn.sheet import Pen
from wakeful.turn.turn import Thinker
from wakeful.views.agents import AgentCard, AgentView
from wakeful.views.lanes import LaneView
from wakeful.views.ledger import LedgerView
from wakeful.views.sessions import SessionView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.views.why import WhyView
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft

DATABASE_NAME = "wakeful.db"

_drafts = msgspec.json.Decoder(Draft)


class Service(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


class Listener(Service, Protocol):
    """A service that others reach at an address."""

    @property
    def port(self) -> int: ...

    @property
    def url(self) -> str: ...

    def close(self) -> None:
        """Give the port back, also if the service never ran."""
        ...


class HttpDoor(Protocol):
    """The door of `doors/http/door.py`, which only those who want it import."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        ...

    @property
    def operator_token(self) -> str | None:
        """The secret that the operator chose; None: the one in the home folder."""
        ...

    def open(self, rooms: Rooms) -> Listener:
        """Take the port; the runtime runs what this returns."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a runtime was asked to be."""

    settings: Settings
    agents: Mapping[str, Agent]  # the first one is meant where none is named
    doors: Mapping[str, Door]
    http: HttpDoor | None
    clock: Clock
    metrics: Metrics

    @property
    def default_agent(self) -> str:
        return next(iter(self.agents))


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """The rooms of one runtime that its verbs use, and the services that must run."""

    store: Store
    bus: Bus
    ids: Ids
    credentials: Credentials
    intake: Intake
    compactions: Compactions
    acts: SessionActs
    deletion: Deletion
    dispatcher: Dispatcher
    turns: TurnView
    transcripts: TranscriptView
    lanes: LaneView
    services: Mapping[str, Service]
    http: Listener | None = None
    operator: Made | None = None  # the token in the home folder, if there is a door


async def assemble(plan: Plan, stack: AsyncExitStack) -> Assembly:
    """Open the store and build every room on it; the stack closes what was opened."""
    clock, settings = plan.clock, plan.settings
    ids = Ids(clock)
    store = await _open_store(settings, clock)
    stack.push_async_callback(store.close)
    bus = Bus(store, ids, plan.metrics)
    await bus.start()
    if (newest := await outbox.newest_id(store)) is not None:
        ids.follow(newest)  # deliveries go out in the order of their ids, whatever the clock says
    servers = _mcp_servers(plan)
    minds = {agent.id: _mind(agent, servers, plan.clock) for agent in plan.agents.values()}
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
    sender = Sender(store, bus, clock, {**plan.doors, **_webhook_doors(settings.outbound, clock)})
    assembly = Assembly(
        store=store,
        bus=bus,
        ids=ids,
        credentials=Credentials(store, ids),
        intake=intake,
        compactions=Compactions(store, bus, ids, intake),
        acts=SessionActs(store, bus, ids),
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
    return await _with_door(assembly, plan, plan.http, minds, stack)


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
    runner = LaneRunner(
        store,
        clock,
        Opening(pen, minds, owner=ids.new("node")),
        Thinker(store, bus, Recorder(pen), clock, Random()),
        interrupts,
    )
    return Dispatcher(
        store,
        clock,
        runner,
        Recovery(store, intake, sorted(plan.agents)),
        interrupts,
        msgspec.structs.asdict(plan.settings.lanes),
    )


async def _with_door(
    assembly: Assembly,
    plan: Plan,
    door: HttpDoor,
    minds: Mapping[str, Mind],
    stack: AsyncExitStack,
) -> Assembly:
    """Take the port of the HTTP door, and make the operator's token if there is none yet."""
    credentials, home = assembly.credentials, plan.settings.home
    has_token = door.operator_token is not None or await credentials.has_valid()
    if not door.is_local and not has_token:
        raise Permanent(
            "an address that others reach needs a token: start on 127.0.0.1 once, or add one"
        )
    operator = None if home is None else await credentials.operator(home, door.operator_token)
    listener = door.open(_door_rooms(assembly, plan, minds))
    stack.callback(listener.close)
    services = {**assembly.services, "http": listener}
    return replace(assembly, services=services, http=listener, operator=operator)


def _door_rooms(assembly: Assembly, plan: Plan, minds: Mapping[str, Mind]) -> Rooms:
    store, sessions = assembly.store, SessionView(assembly.store)
    agents = AgentView(store, {mind.agent_id: partial(_card, mind) for mind in minds.values()})
    why = WhyView(store, sessions)
    return Rooms(
        default_agent=plan.default_agent,
        store=store,
        bus=assembly.bus,
        clock=plan.clock,
        metrics=plan.metrics,
        intake=assembly.intake,
        acts=assembly.acts,
        compactions=assembly.compactions,
        deletion=assembly.deletion,
        gatekeeper=Gatekeeper(store, plan.clock),
        credentials=assembly.credentials,
        turns=assembly.turns,
        ledger=LedgerView(store),
        sessions=sessions,
        transcripts=assembly.transcripts,
        lanes=assembly.lanes,
        agents=agents,
        why=why,
        voices=find,
        commands=Commands(
            Reach(
                store=store,
                bus=assembly.bus,
                ids=assembly.ids,
                clock=plan.clock,
                intake=assembly.intake,
                compactions=assembly.compactions,
                acts=assembly.acts,
                voices=find,
                sessions=sessions,
                lanes=assembly.lanes,
                agents=agents,
                why=why,
            )
        ),
    )


def _webhook_doors(outbound: Mapping[str, OutboundSettings], clock: Clock) -> dict[str, Door]:
    """Return a door for each receiver of webhooks."""
    if not outbound:
        return {}
    # Loaded by those alone who send webhooks: HTTP and TLS take time and memory.
    from wakeful.doors.webhooks_out import WebhookOut
    from wakeful.net.client import Client

    client = Client(clock)
    return {
        name: WebhookOut(
            name,
            one.url,
            read_keys(one.secret or ""),
            client=client,
            clock=clock,
            allowed=allow([parse(one.url).host]) if one.allow_private else NOBODY,
        )
        for name, one in outbound.items()
    }


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


def _mcp_servers(plan: Plan) -> dict[str, McpServer]:
    """Return the servers whose tools some agent has; the others are not even started."""
    known, home = plan.settings.mcp_servers, plan.settings.home or Path()
    used = {name: agent.id for agent in plan.agents.values() for name in agent.mcp}
    for name, agent_id in used.items():
        if name not in known:
            rule = f"must be one of {', '.join(sorted(known)) or 'none'}, not {name[:60]!r}"
            raise InvalidInput(f"agents.{agent_id}.mcp", rule)
    return {
        name: McpServer(
            name,
            known[name],
            folder=home / Path(known[name].folder or "").expanduser(),
            clock=plan.clock,
        )
        for name in sorted(used)
    }


def _mind(agent: Agent, servers: Mapping[str, McpServer], clock: Clock) -> Mind:
    own = {tool.name for tool in agent.tools}
    builtin = default_tools() if agent.has_default_tools else ()
    tools = [*agent.tools, *(tool for tool in builtin if tool.name not in own)]
    toolbox = Toolbox(tools, [servers[name] for name in agent.mcp])
    models = (agent.model, *agent.fallback_models)
    return Mind(agent, voice(models, agent.config.limits, clock), toolbox)


def _card(mind: Mind) -> AgentCard:
    return AgentCard(
        config=mind.config,
        model=mind.model.name,
        fallback_models=mind.fallback_models,
        tools=tuple(mind.toolbox.all()),
        mcp=mind.toolbox.statuses(),
    )
