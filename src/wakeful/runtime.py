"""The runtime: builds every room in path order, runs their services, drains and stops."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.broker import lanes
from wakeful.bus.bus import Bus, Subscription
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.sender import Door, Sender
from wakeful.doors.signing import read_keys
from wakeful.gate import halts
from wakeful.gate.storms import StormLimits
from wakeful.intake.accept import IntakeRules
from wakeful.intake.bindings import Bindings, Contact
from wakeful.intake.draft import parse_priority
from wakeful.intake.intake import Intake, Stopped
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.interrupts import Interrupts
from wakeful.lanes.lane import LaneRunner
from wakeful.lanes.opening import Opening
from wakeful.lanes.recovery import Recovery
from wakeful.models.catalog import find
from wakeful.net.addresses import NOBODY, allow
from wakeful.net.target import parse
from wakeful.operations.janitor import Janitor
from wakeful.settings.settings import Settings
from wakeful.store.database import Store, Tx
from wakeful.store.opening import is_postgres, open_store
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Timekeeper
from wakeful.timers.timers import Timer
from wakeful.tools.builtin import default_tools
from wakeful.tools.toolbox import Toolbox
from wakeful.turn.agent import Agent, Mind
from wakeful.turn.ending import Ending
from wakeful.turn.record import Recorder
from wakeful.turn.sheet import Pen
from wakeful.turn.turn import Thinker
from wakeful.turns.turns import Turn
from wakeful.views.agents import AgentCard, AgentView
from wakeful.views.lanes import LaneStatus, LaneView
from wakeful.views.ledger import LedgerView
from wakeful.views.sessions import SessionView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.views.why import WhyView
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock, SystemClock, time_limit
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput, Permanent, StoreFailed
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Attachment, Draft, Receipt

DEFAULT_WAIT_S = 15.0
LONGEST_WAIT_S = 120.0
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


class Runtime:
    """Keeps agents alive; use it as `async with Runtime(...) as runtime`."""

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        home: Path | str | None = None,
        settings: Settings | None = None,
        doors: Mapping[str, Door] | None = None,
        http: HttpDoor | None = None,
        clock: Clock | None = None,
    ) -> None:
        settings = settings or Settings()
        if home is not None:
            settings = msgspec.structs.replace(settings, home=Path(home).expanduser())
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.metrics = Metrics()
        self._agents = {agent.id: agent for agent in agents or (Agent(),)}
        if len(self._agents) != len(agents or (1,)):
            raise InvalidInput("agents", "two agents have the same id")
        self._doors = dict(doors or {})
        if clash := self._doors.keys() & settings.outbound.keys():
            raise InvalidInput(f"outbound.{min(clash)}", "must not be the name of another door")
        self._http_door = http
        self.http: Listener | None = None  # the HTTP door, if there is one
        self.operator: Made | None = None  # the token in the home folder, if there is a door
        self._stack = AsyncExitStack()
        self._services: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self._drain()
        for task in self._services:
            task.cancel()
        try:
            await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            failed, _ = group.split(StoreFailed)
            if failed is None:
                raise
            raise _first(failed) from group

    async def _start(self) -> None:
        ids = Ids(self.clock)
        self.store = store = await self._open_store()
        self._stack.push_async_callback(store.close)
        self._bus = bus = Bus(store, ids, self.metrics)
        await bus.start()
        self.credentials = Credentials(store, ids)
        minds = {agent.id: _mind(agent) for agent in self._agents.values()}
        agents = Agents({agent_id: mind.config for agent_id, mind in minds.items()})
        self._intake = intake = Intake(
            store, bus, ids, agents, self._intake_rules(), self._bindings(agents)
        )
        self._views = TurnView(store, bus, self.clock)
        self._transcripts = TranscriptView(store)
        self._lanes = LaneView(store, self.clock)
        pen = Pen(
            bus=bus,
            ids=ids,
            ending=Ending(bus, ids),
            queue_settings_of=intake.acceptance.queue_settings,
        )
        opening = Opening(pen, minds, owner=ids.new("node"))
        interrupts = Interrupts()
        thinker = Thinker(store, bus, Recorder(pen), self.clock)
        runner = LaneRunner(store, self.clock, opening, thinker, interrupts)
        self._dispatcher = Dispatcher(
            store,
            self.clock,
            runner,
            Recovery(store, intake, sorted(minds)),
            interrupts,
            msgspec.structs.asdict(self.settings.lanes),
        )
        timekeeper = Timekeeper(
            store,
            bus,
            self.clock,
            {"stimulus": self._fire_stimulus},
            lanes.lock,
            more_locks=[halts.ASKING],
        )
        sender = Sender(store, bus, self.clock, {**self._doors, **self._outbound_doors()})
        janitor = Janitor(store, bus, self.clock, **msgspec.structs.asdict(self.settings.retention))
        if self._http_door is not None:
            self.http = await self._open_door(self._http_door, minds)
            self._stack.callback(self.http.close)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        services: dict[str, Service] = {
            "dispatcher": self._dispatcher,
            "timekeeper": timekeeper,
            "sender": sender,
            "janitor": janitor,
        }
        if self.http is not None:
            services["http"] = self.http
        for name, service in services.items():
            self._services.append(group.create_task(service.run(), name=name))
        self._services.append(group.create_task(self._watch_store(), name="store watch"))

    # The fields of a message, all but the text with a default.
    async def send(  # noqa: PLR0913
        self,
        text: str,
        *,
        session: str = "main",
        priority: str = "next",
        mode: str | None = None,
        source: str = "operator",
        dedup_key: str | None = None,
        route: Route | None = None,
        attachments: Sequence[Attachment] = (),
    ) -> Receipt:
        """Give an agent a message; it is on disk when this returns."""
        return await self.accept(
            Draft(
                session_key=self._key(session),
                text=_text(text, "text"),
                priority=parse_priority(_text(priority, "priority")),
                mode=None if mode is None else _mode(mode),
                source=_text(source, "source"),
                dedup_key=None if dedup_key is None else _text(dedup_key, "dedup_key"),
                route=route,
                attachments=tuple(attachments),
            )
        )

    async def receive(
        self, contact: Contact, text: str, *, dedup_key: str | None = None
    ) -> Receipt:
        """Give a message from somebody at a door to the agent and session bound to it."""
        bound = self._intake.bindings.resolve(contact)
        route = Route(
            door=contact.door,
            address=contact.group or contact.channel or contact.peer,
            thread=contact.thread,
            account=contact.account,
        )
        return await self.accept(
            Draft(
                session_key=bound.session_key,
                text=_text(text, "text"),
                source=contact.peer or contact.door,
                scope=contact.door,
                dedup_key=dedup_key,
                route=route,
                binding=bound.binding_id,
            )
        )

    async def accept(self, draft: Draft) -> Receipt:
        """Accept any stimulus; `send` is the short form for messages."""
        return await self._intake.accept(draft)

    async def wait(self, what: Receipt | str, timeout_s: float = DEFAULT_WAIT_S) -> Turn | None:
        """Return the turn that a receipt (or a turn id) led to, once it has ended.

        None means that the stimulus ended without a turn, or that the time was over first.
        """
        if not 0 < timeout_s <= LONGEST_WAIT_S:
            raise InvalidInput("timeout_s", f"must be above 0 and at most {LONGEST_WAIT_S:g}")
        if isinstance(what, Receipt):
            return await self._views.wait_for_stimulus(what, timeout_s)
        return await self._views.wait_for_turn(what, timeout_s)

    def subscribe(
        self,
        *,
        topics: Sequence[str] = ("*",),
        session: str | None = None,
        since: str | None = None,
    ) -> Subscription:
        """Follow events: after `since` if given, then live ones, neither gap nor repeat."""
        key = None if session is None else self._key(session)
        return self._bus.follow(topics=topics, session_key=key, since=since)

    async def cursor(self) -> str:
        """Return the position after the newest event, for `subscribe(since=…)`."""
        return await self._bus.head()

    async def entries(self, session: str = "main", *, limit: int = 100) -> list[Entry]:
        """Return the newest entries of a session's transcript, oldest first."""
        return await self._transcripts.newest(self._key(session), limit)

    async def lane(self, session: str = "main") -> LaneStatus:
        """Return what a session's lane is doing, and what it waits for."""
        return await self._lanes.status(self._key(session))

    async def set_queue(self, session: str, queue: QueueOverrides) -> None:
        """Keep queue settings for one session; what waits there follows them at once."""
        await self._intake.set_queue(self._key(session), queue)

    async def stop(self, session: str = "main") -> Stopped:
        """End the session's running turn and cancel what people have waiting there."""
        return await self._intake.stop(self._key(session))

    async def abort(self, turn_id: str) -> bool:
        """End one turn; False if it had ended already."""
        return await self._intake.abort(turn_id)

    async def cancel(self, stimulus_id: str) -> bool:
        """Cancel a stimulus that still waits; False if it is too late."""
        return await self._intake.cancel(stimulus_id)

    async def halt(self, agent: str | None = None) -> bool:
        """Stop every model and tool call of an agent, or of all, until `resume`."""
        return await self._intake.halt(agent)

    async def resume(self, agent: str | None = None) -> bool:
        """Lift a halt; everything goes on where it was."""
        return await self._intake.resume(agent)

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT; a second one leaves at once, losing nothing."""
        loop = asyncio.get_running_loop()
        first = asyncio.Event()

        def asked_to_stop() -> None:
            if first.is_set():
                for task in self._services:
                    task.cancel()
            first.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked_to_stop)
        await first.wait()

    def _key(self, session: str) -> SessionKey:
        """Return the key that a caller's words name; short forms mean the first agent."""
        return keys.canonical(_text(session, "session"), next(iter(self._agents)), "session")

    async def _drain(self) -> None:
        """Wait for running turns, though not for ever; what is left goes on at the next start."""
        try:
            async with time_limit(self.clock, self.settings.drain_s):
                await self._dispatcher.drain()
        except TimeoutError:
            pass

    async def _open_door(self, door: HttpDoor, minds: Mapping[str, Mind]) -> Listener:
        """Take the port of the HTTP door, and make the operator's token if there is none yet."""
        has_token = door.operator_token is not None or await self.credentials.has_valid()
        if not door.is_local and not has_token:
            raise Permanent(
                "an address that others reach needs a token: start on 127.0.0.1 once, or add one"
            )
        if self.settings.home is not None:
            self.operator = await self.credentials.operator(self.settings.home, door.operator_token)
        store, sessions = self.store, SessionView(self.store)
        rooms = Rooms(
            default_agent=next(iter(self._agents)),
            store=store,
            bus=self._bus,
            clock=self.clock,
            metrics=self.metrics,
            intake=self._intake,
            gatekeeper=Gatekeeper(store, self.clock),
            credentials=self.credentials,
            turns=self._views,
            ledger=LedgerView(store),
            sessions=sessions,
            transcripts=self._transcripts,
            lanes=self._lanes,
            agents=AgentView(store, [_card(mind) for mind in minds.values()]),
            why=WhyView(store, sessions),
        )
        return door.open(rooms)

    def _outbound_doors(self) -> dict[str, Door]:
        """Return a door for each receiver of webhooks."""
        if not self.settings.outbound:
            return {}
        # Loaded by those alone who send webhooks: HTTP and TLS take time and memory.
        from wakeful.doors.webhooks_out import WebhookOut
        from wakeful.net.client import Client

        client = Client(self.clock)
        return {
            name: WebhookOut(
                name,
                one.url,
                read_keys(one.secret or ""),
                client=client,
                clock=self.clock,
                allowed=allow([parse(one.url).host]) if one.allow_private else NOBODY,
            )
            for name, one in self.settings.outbound.items()
        }

    async def _open_store(self) -> Store:
        database, home = self.settings.database, self.settings.home
        if is_postgres(database):
            return await open_store(database, clock=self.clock)
        return await open_store(home / DATABASE_NAME if home else None, clock=self.clock)

    def _bindings(self, agents: Agents) -> Bindings:
        for position, binding in enumerate(self.settings.bindings):
            agents.get(binding.agent, f"bindings[{position}].agent")
        return Bindings(
            self.settings.bindings,
            default_agent=next(iter(self._agents)),
            dm_scope=self.settings.dm_scope,
            identity_links=self.settings.identity_links,
        )

    def _intake_rules(self) -> IntakeRules:
        storm = self.settings.storm
        return IntakeRules(
            queue=self.settings.queue,
            doors=self.settings.doors,
            storm=StormLimits(turns=storm.turns, window_s=storm.window_s),
            max_chain_depth=self.settings.max_chain_depth,
        )

    def _fire_stimulus(self, tx: Tx, timer: Timer, now: int) -> None:
        """File the stimulus that a timer carries."""
        draft = _drafts.decode(timer.payload)
        if draft.session_key != timer.target:
            raise InvalidInput("session_key", "a timer files stimuli for its target only")
        self._intake.accept_in(tx, [draft])

    async def _watch_store(self) -> None:
        await self.store.wait_failed()
        raise StoreFailed


def _mind(agent: Agent) -> Mind:
    own = {tool.name for tool in agent.tools}
    builtin = default_tools() if agent.has_default_tools else ()
    tools = [*agent.tools, *(tool for tool in builtin if tool.name not in own)]
    return Mind(agent, find(agent.model), Toolbox(tools))


def _card(mind: Mind) -> AgentCard:
    return AgentCard(config=mind.config, model=mind.model.name, tools=tuple(mind.toolbox.all()))


def _text(value: Any, field: str) -> str:  # callers without a type checker pass anything
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    return value


def _mode(word: str) -> Mode:
    try:
        return Mode(_text(word, "mode"))
    except ValueError:
        known = ", ".join(Mode)
        raise InvalidInput("mode", f"must be one of {known}, not {word[:40]!r}") from None


def _first(group: BaseExceptionGroup[StoreFailed]) -> StoreFailed:
    error: StoreFailed | BaseExceptionGroup[StoreFailed] = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
