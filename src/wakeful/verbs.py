"""The verbs: what a program says to its agents, asks of them and sees of them."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from wakeful.access.principal import Principal
from wakeful.approvals.approvals import Approval
from wakeful.automation_verbs import AutomationVerbs
from wakeful.bus.bus import Subscription
from wakeful.doors import hooks, messaging, naming, stimulus_stream
from wakeful.doors import inbox as inbox_door
from wakeful.doors.hooks import HookStatus
from wakeful.doors.inbox import InboxItem
from wakeful.doors.messaging import Message
from wakeful.doors.stimulus_stream import ModelWaits, StoryDelta, StoryRestart
from wakeful.gate.budget_acts import Raise
from wakeful.gate.quiet import QuietStatus
from wakeful.intake.bindings import Contact
from wakeful.intake.deletion import Deleted
from wakeful.intake.intake import Stopped
from wakeful.intake.sessions import Changes, ResetDone
from wakeful.sleeps.sleeps import Sleep
from wakeful.transcript.jsonl import exporting
from wakeful.transcript.jsonl.importing import ImportReport
from wakeful.transcript.sessions import Session
from wakeful.triggers.sleep_acts import Entered, Woken
from wakeful.turns.turns import Turn
from wakeful.views.activity import FeedFilter, FeedPage
from wakeful.views.agents import AgentStatus
from wakeful.views.budgets import BudgetStatus
from wakeful.views.cards import TranscriptCard
from wakeful.views.counts import Counts
from wakeful.views.heartbeats import HeartbeatStatus
from wakeful.views.inbox import InboxFilter
from wakeful.views.lanes import LaneStatus
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalState
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput, Permanent, Transient
from wakeful.vocabulary.forecast import USUAL_DAYS, Forecast
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.queueing import NO_OVERRIDES, Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import (
    OPERATOR,
    Attachment,
    Draft,
    Receipt,
    State,
    Stimulus,
)

DEFAULT_WAIT_S = 15.0
LONGEST_WAIT_S = 120.0


class Verbs(AutomationVerbs):
    """What can be said to a runtime, by the operator's word; a runtime has them all."""

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

    async def receive_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        """Take a webhook that came to a server of one's own, for a hook of the settings.

        The body must be the bytes as they came. Raise NotProved unless its sender has the hook's
        secret; a repeated delivery is answered with the first receipt.
        """
        given = {key.lower(): value for key, value in headers.items()}
        return (await hooks.receive(self.services, _text(name, "name"), given, body)).receipt

    async def test_hook(self, name: str, payload: Any = None) -> Receipt:
        """Send a hook an example, signed as its sender signs; text is sent as text, else JSON."""
        return (await hooks.send_example(self.services, _text(name, "name"), payload)).receipt

    async def hooks(self) -> list[HookStatus]:
        """Return the hooks of the settings, and what came to them."""
        return await hooks.statuses(self.services)

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
        return self.services.views.bus.follow(topics=topics, session_key=key, since=since)

    async def cursor(self) -> str:
        """Return the position after the newest event, for `subscribe(since=…)`."""
        return await self.services.views.bus.head()

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

    # The fields of an item, all but the text with a default.
    async def post(
        self,
        text: str,
        *,
        priority: str = "next",
        source: str = "program",
        dedup_key: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        expires_at: int | None = None,
    ) -> Receipt:
        """Leave something in an agent's inbox, as a source; it is on disk when this returns.

        `now` opens a turn at once; `next` waits for the agent's next turn in Activity, `later`
        until the agent asks for it. Whatever it says, it is data and no command.
        """
        item = InboxItem(
            text=_text(text, "text"),
            priority=_text(priority, "priority"),
            source=_text(source, "source"),
            dedup_key=None if dedup_key is None else _text(dedup_key, "dedup_key"),
            agent=None if agent is None else _text(agent, "agent"),
            session=None if session is None else _text(session, "session"),
            expires_at=expires_at,
        )
        return await inbox_door.post(self.services, Principal.operator(), item)

    async def inbox(
        self,
        *,
        source: str | None = None,
        state: State | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Stimulus]:
        """Return what sources left for agents, newest first; `after` is the id of one."""
        wanted = InboxFilter(source=source, state=state)
        return await self.services.views.inbox.page(wanted, after, limit)

    async def dismiss(self, stimulus_id: str) -> bool:
        """Throw away an item of the inbox; False if a turn was given it, or it has ended."""
        item = await self.services.inbox_items.dismiss(stimulus_id, lambda _: True)
        return item is not None

    async def activity(
        self,
        *,
        agent: str | None = None,
        origin: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> FeedPage:
        """Return what happened in every session, the newest first; `after` is a page's `next`."""
        wanted = FeedFilter(agent_id=agent, origin=None if origin is None else _origin(origin))
        return await self.services.views.activity.page(wanted, after, limit)

    async def see_activity(self, until: int | None = None, *, agent: str | None = None) -> int:
        """Note that people have read what happened up to an instant, or to now.

        Return how much is left unread, of that agent or of all.
        """
        views = self.services.views
        if agent is not None:
            views.agents.card(agent)
        until = views.clock.now() if until is None else until
        return await self.services.activity.see(until, agent)

    async def counts(self) -> Counts:
        """Return how much waits, runs, sleeps and is unread, with the position before that."""
        return await self.services.views.counts.get()

    async def reset(self, session: str = "main") -> ResetDone:
        """Begin a new transcript; while a turn is open, with the next one."""
        return await self.services.acts.reset(self._key(session))

    async def export(
        self, session: str = "main", *, transcript: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a transcript, or one from before a reset, as the pieces of a file of JSON lines."""
        store = self.services.views.store
        wanted = await exporting.source(store, self._key(session), transcript)
        async for piece in exporting.export(store, wanted):
            yield piece

    async def import_transcript(
        self, file: AsyncIterator[bytes], *, session: str | None = None
    ) -> ImportReport:
        """Make a new session of the pieces of a transcript's file; what was not kept is told."""
        key = None if session is None else self._named(session)
        return await self.services.imports.run(file, key)

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

    async def agents(self) -> list[AgentStatus]:
        """Return every agent: what it does, who sleeps, what was skipped, when it wakes next."""
        return await self.services.views.agents.all()

    async def sleep(self, session: str, seconds: float, reason: str = "") -> Entered:
        """Let a session rest: for a minute to a day, or until somebody needs it."""
        return await self.services.sleep_acts.sleep(
            self._key(session), round(seconds * 1000), _text(reason, "reason")
        )

    async def wake(self, session: str = "main") -> Woken:
        """End a session's sleep; what comes back says why it may not run now, if it may not."""
        return await self.services.sleep_acts.wake(self._key(session))

    async def sleeps(
        self, agent: str | None = None, *, after: str = "", limit: int = 100
    ) -> list[Sleep]:
        """Return who sleeps, until when and why; `after` is the `owner` of one."""
        return await self.services.views.sleeps.page(agent, after, limit)

    async def heartbeat(self, agent: str = "main") -> HeartbeatStatus:
        """Return whether an agent's heart beats, when next, and what came of the last time."""
        views = self.services.views
        return await views.heartbeats.of(agent, views.agents.card(agent).config.heartbeat)

    async def set_heartbeat(self, agent: str = "main", *, is_on: bool) -> HeartbeatStatus:
        """Turn an agent's heartbeat on or off, until it is turned again."""
        await self.services.heartbeats.switch(agent, is_on=is_on)
        return await self.heartbeat(agent)

    async def beat(self, agent: str = "main") -> Receipt:
        """Let an agent look after things now, as far as the gate lets it."""
        return await self.services.heartbeats.ask(agent)

    async def budgets(self, agent: str | None = None) -> list[BudgetStatus]:
        """Return what is left of the budgets today: of one agent, its own first, or of all."""
        view = self.services.views.budgets
        return await (view.all() if agent is None else view.of_agent(agent))

    async def raise_budget(
        self, money: float = 0.0, *, agent: str = "main", turns: int = 0, until: int | None = None
    ) -> BudgetStatus:
        """Let an agent spend more, until an instant or the end of the day; who waited goes on."""
        wish = Raise(agent_id=agent, money=money, turns=turns, until=until)
        await self.services.budget_acts.increase(wish, Principal.operator().name)
        return await self.services.views.budgets.own(agent)

    async def quiet(self, agent: str = "main") -> QuietStatus:
        """Return whether only people and what is urgent wake an agent now, and until when."""
        return await self.services.views.quiet.of(agent)

    async def set_quiet(self, until: int | None, *, agent: str = "main") -> QuietStatus:
        """Leave people in peace until an instant; None ends it, and what was put off goes on."""
        return await self.services.quiet_acts.set(agent, until, Principal.operator().name)

    async def forecast(self, days: int = USUAL_DAYS, *, agent: str | None = None) -> Forecast:
        """Return what the schedule alone will do in so many days, and what that will cost.

        The same functions run on a virtual clock, over a copy in memory: nothing is written. What
        people, models and failures change is not in it.
        """
        return await self.services.forecast(days, agent)

    async def approvals(
        self, state: str | None = "open", *, after: int | None = None, limit: int = 100
    ) -> list[Approval]:
        """Return what agents asked people, newest first; `after` is the `number` of one.

        State `None` means every state.
        """
        wanted = None if state is None else _approval_state(state)
        return await self.services.views.approvals.page(wanted, after, limit)

    async def approve(self, approval: int | str, note: str | None = None) -> Approval:
        """Let a call run that waits for it, or answer a question; by number or id."""
        return await self._decide(approval, ApprovalDecision.APPROVE, note)

    async def deny(self, approval: int | str, note: str | None = None) -> Approval:
        """Refuse a call that waits for approval; the note is told to the agent."""
        return await self._decide(approval, ApprovalDecision.DENY, note)

    async def _decide(
        self, approval: int | str, decision: ApprovalDecision, note: str | None
    ) -> Approval:
        named = _text(str(approval) if isinstance(approval, int) else approval, "approval")
        text = None if note is None else _text(note, "note")
        who = Principal.operator().name
        return await self.services.approval_acts.answer(named, decision, who, text)

    def _key(self, session: str) -> SessionKey:
        """Return the key that a caller's words name; short forms mean the first agent."""
        key = self._named(session)
        return self.services.views.bindings.answering_session(key, OPERATOR)

    def _named(self, session: str) -> SessionKey:
        return naming.key_of(self.services.views, _text(session, "session"), "session")


def _answer(turn: Turn) -> str:
    if turn.state != "done":
        raise Permanent(turn.error or f"the turn ended without an answer: {turn.state}")
    return turn.reply or ""


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


def _approval_state(word: str) -> ApprovalState:
    try:
        return ApprovalState(_text(word, "state"))
    except ValueError:
        known = ", ".join(ApprovalState)
        raise InvalidInput("state", f"must be one of {known}, not {word[:40]!r}") from None


def _origin(word: str) -> Origin:
    try:
        return Origin(_text(word, "origin"))
    except ValueError:
        known = ", ".join(Origin)
        raise InvalidInput("origin", f"must be one of {known}, not {word[:40]!r}") from None
