"""The runtime: starts what the assembly built, offers the public verbs, drains and stops."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.access.principal import Principal
from wakeful.assembly.plan import Plan
from wakeful.assembly.running import Running, start
from wakeful.bus.bus import Bus, Subscription
from wakeful.doors import messaging, naming, stimulus_stream
from wakeful.doors.messaging import Message
from wakeful.doors.sender import Door
from wakeful.doors.stimulus_stream import ModelWaits, StoryDelta, StoryRestart
from wakeful.intake.bindings import Contact
from wakeful.intake.deletion import Deleted
from wakeful.intake.intake import Stopped
from wakeful.intake.sessions import Changes, ResetDone
from wakeful.operations import server_note
from wakeful.operations.server_note import RunningServer
from wakeful.services import Services
from wakeful.settings.settings import Settings
from wakeful.store.database import Store
from wakeful.store.opening import is_postgres
from wakeful.telemetry.metrics import Metrics
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn
from wakeful.views.cards import TranscriptCard
from wakeful.views.lanes import LaneStatus
from wakeful.vocabulary.clock import Clock, SystemClock, time_limit
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput, Permanent, StoreFailed, Transient
from wakeful.vocabulary.queueing import NO_OVERRIDES, Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR, Attachment, Draft, Receipt

if TYPE_CHECKING:
    from wakeful.doors.http.door import HttpDoor
    from wakeful.doors.http.server import HttpServer

DEFAULT_WAIT_S = 15.0
LONGEST_WAIT_S = 120.0


class Runtime:
    """Keeps agents alive; use it as `async with Runtime(...) as runtime`."""

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        home: Path | str | None = None,
        settings: Settings | None = None,
        doors: Mapping[str, Door] | None = None,
        http: "HttpDoor | None" = None,
        clock: Clock | None = None,
    ) -> None:
        settings = settings or Settings()
        if home is not None:
            settings = msgspec.structs.replace(settings, home=Path(home).expanduser())
        self.clock: Clock = clock or SystemClock()
        self.metrics = Metrics()
        self._plan = Plan(
            settings=settings,
            agents=_by_id(agents),
            doors=dict(doors or {}),
            http=http,
            clock=self.clock,
            metrics=self.metrics,
        )
        self._plan.check()
        self._stack = AsyncExitStack()
        self._running: Running  # from the start on

    async def __aenter__(self) -> Self:
        try:
            self._running = await start(self._plan, self._stack)
            self._note_server()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    def _note_server(self) -> None:
        """Let the command line find this server, if there is one and it has a home."""
        home = self.settings.home
        if home is None or self.url is None:
            return
        has_file = not is_postgres(self.settings.database)
        here = RunningServer(
            pid=os.getpid(), url=self.url, started_at=self.clock.now(), has_file=has_file
        )
        server_note.note(home, here)
        self._stack.callback(server_note.forget, home)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self._drain()
        self.leave()
        try:
            await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            failed, _ = group.split(StoreFailed)
            if failed is None:
                raise
            raise _first(failed) from group

    @property
    def settings(self) -> Settings:
        return self._plan.settings

    @property
    def services(self) -> Services:
        """What the verbs below are made of, for a door of one's own."""
        return self._running.built.services

    @property
    def store(self) -> Store:
        return self.services.views.store

    @property
    def bus(self) -> Bus:
        return self.services.views.bus

    @property
    def credentials(self) -> Credentials:
        return self.services.credentials

    @property
    def http(self) -> "HttpServer | None":
        """The HTTP door, if there is one."""
        return self._running.built.http

    @property
    def url(self) -> str | None:
        """Where this machine reaches the HTTP door, if there is one."""
        return None if self.http is None else server_note.reachable(self.http.url)

    @property
    def operator(self) -> Made | None:
        """The token in the home folder, if there is a door."""
        return self._running.built.operator

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
        """Give an agent a message, as the operator; it is on disk when this returns.

        A command (`/stop`) is done instead, and its receipt has the `reply`.
        """
        message = Message(
            text=_text(text, "text"),
            priority=_text(priority, "priority"),
            queue=NO_OVERRIDES if mode is None else QueueOverrides(mode=_mode(mode)),
            source=_text(source, "source"),
            dedup_key=None if dedup_key is None else _text(dedup_key, "dedup_key"),
            route=route,
            attachments=tuple(attachments),
        )
        words = _text(session, "session")
        return await messaging.send(self.services, Principal.operator(), words, message)

    async def ask(
        self, text: str, *, session: str = "main", timeout_s: float = LONGEST_WAIT_S
    ) -> str:
        """Give an agent a message, as the operator, and return its answer.

        Raise Transient if the time is over first (the message is safe, and will be answered), and
        Permanent if it ended without an answer.
        """
        receipt = await self.send(text, session=session)
        if receipt.reply is not None:
            return receipt.reply
        turn = await self.wait(receipt, timeout_s)
        if turn is None:
            raise Transient(f"no answer yet within {timeout_s:g} s; the message is safe")
        return _answer(turn)

    async def stream(self, text: str, *, session: str = "main") -> AsyncGenerator[str, None]:
        """Give an agent a message, as the operator, and yield its words as they come.

        Where a model fails in the middle and is asked again, its words begin anew after an empty
        line. Raise Permanent at the end if there was no answer.
        """
        message = Message(text=_text(text, "text"))
        words = _text(session, "session")
        story = await stimulus_stream.send(self.services, Principal.operator(), words, message)
        said = ""
        try:
            async for item in story:
                match item:
                    case StoryDelta(text=more):
                        said += more
                        yield more
                    case StoryRestart() | ModelWaits():
                        said = ""
                        yield "\n\n"
                    case Receipt(reply=str() as reply):
                        yield reply
                    case Turn():
                        yield "" if said else _answer(item)
                    case _:
                        pass
        finally:
            await story.aclose()

    async def receive(
        self,
        principal: Principal,
        contact: Contact,
        text: str,
        *,
        dedup_key: str | None = None,
        message_id: str | None = None,
        attachments: Sequence[Attachment] = (),
        is_mention: bool | None = None,
    ) -> Receipt:
        """Give a message from somebody at a door of one's own to the session bound to them.

        Who speaks is `Principal.operator()`, or `Principal.stranger()`: then what they say is
        data, and they share a conversation with nobody. In a room `is_mention` tells whether the
        agent is meant; without it, `@` and the agent's id in the text does. Deliveries that answer
        the message name it by the `message_id` that the door gave it.
        """
        _check(principal, Principal, "principal")
        _check(contact, Contact, "contact")
        message = Message(
            text=_text(text, "text"),
            dedup_key=dedup_key,
            message_id=message_id,
            attachments=tuple(attachments),
            is_mention=is_mention,
        )
        return await messaging.send(self.services, principal, contact, message)

    async def accept(self, draft: Draft) -> Receipt:
        """Accept any stimulus, as it is; what people say comes by `send` or `receive`."""
        return await self.services.intake.accept(draft)

    async def wait(self, what: Receipt | str, timeout_s: float = DEFAULT_WAIT_S) -> Turn | None:
        """Return the turn that a receipt (or a turn id) led to, once it has ended.

        None means that the stimulus ended without a turn, or that the time was over first.
        """
        if not 0 < timeout_s <= LONGEST_WAIT_S:
            raise InvalidInput("timeout_s", f"must be above 0 and at most {LONGEST_WAIT_S:g}")
        if isinstance(what, Receipt):
            return await self.services.views.turns.wait_for_stimulus(what, timeout_s)
        return await self.services.views.turns.wait_for_turn(what, timeout_s)

    def subscribe(
        self,
        *,
        topics: Sequence[str] = ("*",),
        session: str | None = None,
        since: str | None = None,
    ) -> Subscription:
        """Follow events: after `since` if given, then live ones, neither gap nor repeat."""
        key = None if session is None else self._key(session)
        return self.bus.follow(topics=topics, session_key=key, since=since)

    async def cursor(self) -> str:
        """Return the position after the newest event, for `subscribe(since=…)`."""
        return await self.bus.head()

    async def entries(
        self, session: str = "main", *, transcript: str | None = None, limit: int = 100
    ) -> list[Entry]:
        """Return the newest entries of a session's transcript, oldest first.

        `transcript` names one of `transcripts`, or the leaf of one of its branches.
        """
        view = self.services.views.transcripts
        return list(await view.page(self._key(session), path=transcript, limit=limit))

    async def transcripts(
        self, session: str = "main", *, after: str | None = None, limit: int = 100
    ) -> list[TranscriptCard]:
        """Return conversations of a session, the newest first; `after` is the `place` of one."""
        view = self.services.views.transcripts
        return await view.cards(self._key(session), after=after, limit=limit)

    async def lane(self, session: str = "main") -> LaneStatus:
        """Return what a session's lane is doing, and what it waits for."""
        return await self.services.views.lanes.status(self._key(session))

    async def set_queue(self, session: str, queue: QueueOverrides) -> None:
        """Keep queue settings for one session; what waits there follows them at once."""
        await self.services.intake.set_queue(self._key(session), queue)

    async def choose(self, session: str, changes: Changes) -> Session:
        """Keep a label, a model or other choices for one session."""
        return await self.services.acts.choose(self._key(session), changes)

    async def label(self, session: str, entry_id: str, text: str) -> None:
        """Label an entry; the last label counts, an empty one removes it."""
        await self.services.acts.label_entry(
            self._key(session), _text(entry_id, "entry_id"), _text(text, "text")
        )

    async def see(self, session: str = "main", entry_id: str | None = None) -> int:
        """Note what people have read; return how many entries are left unread."""
        return (await self.services.acts.see(self._key(session), entry_id)).unread

    async def tell(self, text: str, *, agent: str = "main", source: str = "program") -> Receipt:
        """Tell an agent what happened: it reads that with its next heartbeat."""
        return await self.services.heartbeats.file_event(
            agent, _text(text, "text"), source=_text(source, "source")
        )

    async def reset(self, session: str = "main") -> ResetDone:
        """Begin a new transcript; while a turn is open, with the next one."""
        return await self.services.acts.reset(self._key(session))

    async def fork(
        self,
        session: str = "main",
        *,
        at: str | None = None,
        to: str | None = None,
        summary: str | None = None,
    ) -> Session:
        """Go on from an entry (or from the last one): on a new branch, or in a new session."""
        return await self.services.acts.fork(
            self._key(session), at=at, to=None if to is None else self._named(to), summary=summary
        )

    async def delete(self, session: str, *, is_confirmed: bool = False) -> Deleted:
        """Delete a session; what runs there is stopped first."""
        key = self._named(session)
        if key != self._key(session):
            return Deleted(deleted=True)  # a name without a session of its own: nothing is removed
        return await self.services.deletion.delete(key, is_confirmed=is_confirmed)

    async def compact(self, session: str = "main", wish: str = "") -> Receipt:
        """Compact the older part of a conversation into a summary, when its lane is free."""
        return await self.services.compactions.ask(
            self._key(session), _text(wish, "wish"), Route(door="library"), Principal.operator()
        )

    async def undo_compaction(self, session: str = "main") -> Entry:
        """Give back the view before the last compaction; what was said since then stays."""
        return await self.services.compactions.undo(self._key(session))

    async def stop(self, session: str = "main") -> Stopped:
        """End the session's running turn and cancel what people have waiting there."""
        return await self.services.intake.stop(self._key(session))

    async def abort(self, turn_id: str) -> bool:
        """End one turn; False if it had ended already."""
        return await self.services.intake.abort(turn_id)

    async def cancel(self, stimulus_id: str) -> bool:
        """Cancel a stimulus that still waits; False if it is too late."""
        return await self.services.intake.cancel(stimulus_id)

    async def halt(self, agent: str | None = None) -> bool:
        """Stop every model and tool call of an agent, or of all, until `resume`."""
        return await self.services.intake.halt(agent)

    async def resume(self, agent: str | None = None) -> bool:
        """Lift a halt; everything goes on where it was."""
        return await self.services.intake.resume(agent)

    async def reconfigure(
        self, *, agents: Sequence[Agent] | None = None, settings: Settings | None = None
    ) -> Sequence[str]:
        """Work by other agents and settings from now on; nothing waits, and no turn is cut.

        What is None stays. An open turn keeps what it opened with; whatever begins next takes what
        is new. Return the keys that a start alone can change, which stay as they are. If the new
        settings could not work, this raises and changes nothing.
        """
        known = self._plan.agents if agents is None else _by_id(agents)
        plan = replace(self._plan, agents=known, settings=settings or self.settings)
        plan.check()
        kept = await self._running.take(plan)
        self._plan = self._running.plan
        return kept

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT; a second one leaves at once, losing nothing."""
        loop = asyncio.get_running_loop()
        first = asyncio.Event()

        def asked_to_stop() -> None:
            if first.is_set():
                self.leave()
            first.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked_to_stop)
        await first.wait()

    def leave(self) -> None:
        """End every service at once; what was going on goes on at the next start."""
        self._running.leave()

    def _key(self, session: str) -> SessionKey:
        """Return the key that a caller's words name; short forms mean the first agent."""
        key = self._named(session)
        return self.services.views.bindings.answering_session(key, OPERATOR)

    def _named(self, session: str) -> SessionKey:
        return naming.key_of(self.services.views, _text(session, "session"), "session")

    async def _drain(self) -> None:
        """Wait for running turns, though not for ever; what is left goes on at the next start."""
        try:
            async with time_limit(self.clock, self.settings.drain_s):
                await self._running.built.followers.dispatcher.drain()
        except TimeoutError:
            pass


def ask(
    text: str,
    *,
    agent: Agent | None = None,
    home: Path | str | None = None,
    timeout_s: float = LONGEST_WAIT_S,
) -> str:
    """Ask an agent something and return its answer: a runtime for one question.

    With a `home` the conversation is kept there and goes on with the next question.
    """

    async def asked() -> str:
        async with Runtime(agents=[agent] if agent else (), home=home) as runtime:
            return await runtime.ask(text, timeout_s=timeout_s)

    return asyncio.run(asked())


def _answer(turn: Turn) -> str:
    if turn.state != "done":
        raise Permanent(turn.error or f"the turn ended without an answer: {turn.state}")
    return turn.reply or ""


def _by_id(agents: Sequence[Agent]) -> dict[str, Agent]:
    known = {agent.id: agent for agent in agents or (Agent(),)}
    if len(known) != len(agents or (1,)):
        raise InvalidInput("agents", "two agents have the same id")
    return known


def _text(value: Any, field: str) -> str:  # callers without a type checker pass anything
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    return value


def _check(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be a {kind.__name__}, not {type(value).__name__}")


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
