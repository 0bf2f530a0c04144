"""What people do to whole sessions: reset, fork, label, choose, see. Each is one commit."""

from collections.abc import Callable
from typing import Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from wakeful.access import rules
from wakeful.broker import lane_rows
from wakeful.bus.bus import Bus
from wakeful.store.database import Store, Tx
from wakeful.transcript import entries, forks, resets, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.transcript.sessions import Overrides, Reset, ResponseUsage, Session
from wakeful.vocabulary import queueing
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import parse_thinking
from wakeful.vocabulary.entry import EntryKind, NoteBody
from wakeful.vocabulary.errors import InvalidInput, NotFound, Underway
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record, fitting
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR
from wakeful.vocabulary.text import clean, is_plain

LONGEST_LABEL = 200
LONGEST_SUMMARY = 100_000
LONGEST_MODEL = 256
AGENTS_OWN = "default"  # the name of the agent's own model in the line about a change

CheckModel = Callable[[str], object]  # raises InvalidInput for a name that means no model
FollowQueue = Callable[[Tx, Session], None]  # lets what waits follow new queue settings
OnReset = Callable[[Tx, str], None]  # what else ends with a transcript


class Changes(Record):
    """What somebody chooses for a session; None takes a choice back, UNSET leaves it."""

    label: str | UnsetType | None = UNSET
    queue: QueueOverrides | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    thinking: str | UnsetType | None = UNSET
    send_policy: Literal["allow", "deny"] | UnsetType | None = UNSET
    activation: Literal["mention", "always"] | UnsetType | None = UNSET
    response_usage: ResponseUsage | Literal["on"] | UnsetType | None = UNSET  # on: tokens


class ResetDone(Record):
    """What a reset came to."""

    transcript_id: str  # that the session goes on in, or will leave
    is_waiting: bool  # for the open turn to end


class SessionActs:
    """Changes sessions, under the locks of their lanes."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        ids: Ids,
        check_model: CheckModel,
        follow_queue: FollowQueue,
        on_reset: OnReset,
    ) -> None:
        self._store = store
        self._bus = bus
        self._ids = ids
        self._check_model = check_model
        self._follow_queue = follow_queue
        self._on_reset = on_reset

    async def reset(self, key: SessionKey, by: str = "reset") -> ResetDone:
        """Begin a new transcript: now, or with the next turn while one is open."""
        return await self._store.transact(
            lambda tx: self.reset_in(tx, key, by), locks=[lane_rows.lock(key)]
        )

    def reset_in(self, tx: Tx, key: SessionKey, by: str) -> ResetDone:
        """Reset as part of another change; the caller holds the lock of the lane."""
        session, reset = existing(tx, key), Reset(from_seq=0, by=by)
        if _has_open_turn(tx, key):
            waiting = [one for one in session.resets if one.from_seq > 0]
            sessions.set_resets(tx, key, [reset, *waiting])
            return ResetDone(transcript_id=session.transcript_id, is_waiting=True)
        fresh = resets.begin(tx, session, self._ids.new("tr"), reset)
        self._bus.publish(tx, resets.reset_event(session, fresh, by))
        self._on_reset(tx, key)
        return ResetDone(transcript_id=fresh.transcript_id, is_waiting=False)

    async def fork(
        self,
        key: SessionKey,
        *,
        at: str | None = None,
        to: SessionKey | None = None,
        summary: str | None = None,
        owner: str = OPERATOR,
        is_external: bool = False,
    ) -> Session:
        """Go on from an entry: on a new branch, or in the new session `to`, which is `owner`'s.

        An entry is named by its id, the beginning of it, or what a file of the session calls it.
        A summary tells the new path what the one it leaves came to; `is_external` if somebody
        outside wrote it.
        """
        text = None if summary is None else _checked_summary(summary)
        if to is not None and keys.agent_of(to) != keys.agent_of(key):
            raise InvalidInput("to", f"must be a session of the agent {keys.agent_of(key)!r}")
        named = None if at is None else await forks.entry_called(self._store, key, at)

        def write(tx: Tx) -> Session:
            session = existing(tx, key)
            left = session.leaf_id
            at_id = named or left
            if at_id is None:
                raise InvalidInput("at", "this session has no entry yet")
            if to is None:
                forked = self._fork_here(tx, session, at_id)
            else:
                forked = self._fork_to(tx, session, at_id, to, owner)
            if text is not None:
                body = NoteBody(topic=left or "", text=text, is_external=is_external)
                forked = self._append(tx, forked, EntryKind.BRANCH_SUMMARY, body)
            self._bus.publish(
                tx, "session.forked", key, entry_id=at_id, to=to, branch=forked.branch, left=left
            )
            return forked

        locks = [lane_rows.lock(one) for one in (key, to) if one is not None]
        return await self._store.transact(write, locks=locks)

    async def label_entry(
        self, key: SessionKey, entry_id: str, text: str, *, is_external: bool = False
    ) -> None:
        """Label an entry of a session's path; the last label counts, an empty one removes it."""
        label = _checked_label(text) or ""

        def write(tx: Tx) -> None:
            session = existing(tx, key)
            entry = entries.get(tx, entry_id)
            if entry is None or not entries.is_on(entry, entries.segments_of(tx, session)):
                raise NotFound("entry", f"no entry {entry_id[:80]!r} in this session")
            body = NoteBody(topic=entry_id, text=label, is_external=is_external)
            self._append(tx, session, EntryKind.LABEL, body)
            self._bus.publish(tx, "session.labelled", key, entry_id=entry_id, label=label)

        await self._store.transact(write, locks=[lane_rows.lock(key)])

    async def choose(self, key: SessionKey, changes: Changes) -> Session:
        """Keep what somebody chose for a session; what waits in its lane follows at once."""
        checked = self.checked(changes)
        return await self._store.transact(
            lambda tx: self.choose_in(tx, key, checked), locks=[lane_rows.lock(key)]
        )

    def checked(self, changes: Changes) -> Changes:
        """Return what somebody chose, cleaned, or refuse the first bad value of it."""
        changes = _checked(changes)
        if isinstance(changes.model, str):
            self._check_model(changes.model)
        if changes.label is UNSET:
            return changes
        return replace(changes, label=_checked_label(changes.label or ""))

    def choose_in(self, tx: Tx, key: SessionKey, changes: Changes) -> Session:
        """Keep what was chosen, and checked, as part of another change under the lane's lock."""
        given = {
            name: value
            for name in Changes.__struct_fields__
            if (value := getattr(changes, name)) is not UNSET
        }
        if "queue" in given:
            given["queue"] = given["queue"] or NO_OVERRIDES
        session = existing(tx, key)
        own = {name: given[name] for name in given if name in Overrides.__struct_fields__}
        rest = {name: given[name] for name in given if name not in own}
        chosen = replace(session, overrides=replace(session.overrides, **own), **rest)
        sessions.choose(tx, chosen)
        if chosen.overrides.model != session.overrides.model:
            chosen = self._append(tx, chosen, EntryKind.MODEL_CHANGE, _model_change(chosen))
        if "queue" in given:
            self._follow_queue(tx, chosen)
        self._bus.publish(tx, "session.changed", key, fields=sorted(given))
        return chosen

    async def see(self, key: SessionKey, entry_id: str | None = None) -> Session:
        """Note that people have read up to an entry, or all there is; never back again."""

        def write(tx: Tx) -> Session:
            session = existing(tx, key)
            depth = session.leaf_depth
            if entry_id is not None:
                entry = entries.get(tx, entry_id)
                if entry is None or not entries.is_on(entry, entries.segments_of(tx, session)):
                    raise NotFound("entry", f"no entry {entry_id[:80]!r} in this session")
                depth = entry.depth
            if depth <= session.seen_depth:
                return session
            unread = entries.count_heard(tx, session, depth)
            seen = replace(session, seen_depth=depth, unread=unread)
            sessions.note_seen(tx, seen)
            self._bus.publish(tx, "session.seen", key, unread=seen.unread)
            return seen

        return await self._store.transact(write, locks=[lane_rows.lock(key)])

    def _fork_here(self, tx: Tx, session: Session, at_id: str) -> Session:
        if _has_open_turn(tx, session.key):
            raise Underway(f"a turn is running in {session.key!r}: stop it, or wait for its end")
        at = forks.fork_point(tx, session, at_id)
        if at.transcript_id != session.transcript_id:
            if session.leaf_id is not None:
                resets.leave(tx, session, "fork")
            past = resets.take_back(tx, session.key, at.transcript_id)
            # How far people had read the other transcript says nothing about this one.
            session = replace(session, started_at=past.started_at, seen_depth=at.depth)
        forked = forks.onto_branch(tx, session, at, self._ids.new("br"))
        # A reset that only waited for a turn to end is overtaken; one of a message comes with it.
        waiting = tuple(reset for reset in session.resets if reset.from_seq > 0)
        forked = replace(forked, resets=waiting)
        sessions.begin(tx, forked)
        return forked

    def _fork_to(self, tx: Tx, session: Session, at_id: str, to: SessionKey, owner: str) -> Session:
        at = forks.fork_point(tx, session, at_id)
        lane_rows.add_missing(tx, [to])
        there = sessions.get(tx, to)
        # The name of one that was deleted is kept for whoever had it.
        holder = sessions.past_owners(tx, [to]).get(to, owner) if there is None else there.owner
        if not rules.may_write(owner, holder):
            raise NotFound("to", f"no session {to!r}")
        if there is not None:
            raise InvalidInput("to", f"there is a session {to!r} already")
        copy = forks.copy_of(session, to, owner, tx.now)
        forked = forks.onto_branch(tx, copy, at, self._ids.new("br"))
        forked = replace(forked, seen_depth=at.depth)
        sessions.add_missing(tx, [forked])
        forks.inherit(tx, forked)
        self._bus.publish(tx, "session.created", to)
        return forked

    def _append(self, tx: Tx, session: Session, kind: EntryKind, body: NoteBody) -> Session:
        """Add a line outside of a turn's own; one that is open must not seem to end before it."""
        lane = lane_rows.get(tx, session.key)
        assert lane is not None
        line = NewEntry(
            id=self._ids.entry(), kind=kind, body=body, turn_id=lane.turn_id, epoch=lane.epoch
        )
        return entries.append(tx, session, [line])[0]


Get = Callable[[Tx, str], Session | None]


def existing(tx: Tx, key: str, get: Get = sessions.get) -> Session:
    """Return a session under the lock of its lane, or refuse its name."""
    if lane_rows.get_partly(tx, key) is None or not tx.holds(lane_rows.lock(key)):
        lane_rows.add_missing(tx, [key])  # one that was imported has no lane before its first turn
    session = get(tx, key)
    if session is None:
        raise NotFound("session", f"no session {key!r}")
    return session


def _has_open_turn(tx: Tx, key: str) -> bool:
    lane = lane_rows.get(tx, key)
    return lane is not None and lane.turn_id is not None


def _model_change(session: Session) -> NoteBody:
    """Return the line that says from where on another model answers."""
    provider, _, name = (session.overrides.model or "").rpartition(":")
    return NoteBody(topic=provider, text=name or AGENTS_OWN)


def _checked(changes: Changes) -> Changes:
    """Return the choices as they are declared, or refuse the first that breaks a rule."""
    changes = fitting(changes)
    if isinstance(changes.queue, QueueOverrides):
        changes = replace(changes, queue=queueing.checked(changes.queue))
    if isinstance(changes.thinking, str):
        parse_thinking(changes.thinking)
    if isinstance(changes.model, str):
        is_name = 0 < len(changes.model) <= LONGEST_MODEL and is_plain(changes.model)
        if not is_name:
            raise InvalidInput("model", f"must be 1 to {LONGEST_MODEL} plain characters")
    if isinstance(changes.label, str):
        _checked_label(changes.label)
    if changes.response_usage == "on":
        changes = replace(changes, response_usage="tokens")
    return changes


def _checked_label(text: str) -> str | None:
    """Return a label, None if it is blank, or refuse it."""
    label = text.strip()
    if len(label) > LONGEST_LABEL or not is_plain(label):
        raise InvalidInput("label", f"must be one line of at most {LONGEST_LABEL} characters")
    return label or None


def _checked_summary(text: str) -> str:
    summary = clean(text).strip()
    if not 0 < len(summary) <= LONGEST_SUMMARY:
        raise InvalidInput("summary", f"must be 1 to {LONGEST_SUMMARY} characters")
    return summary
