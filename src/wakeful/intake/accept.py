"""Accept many drafts in one transaction: dedup, guards, sleep, decide, insert, events."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from wakeful.broker import lanes, stimuli
from wakeful.broker.lanes import Lane
from wakeful.bus.bus import Bus
from wakeful.gate import halts, storms
from wakeful.gate.storms import StormLimits
from wakeful.intake import dedup
from wakeful.intake.bindings import Bindings
from wakeful.intake.decide import (
    WAITS,
    Action,
    Arrival,
    Decision,
    Guard,
    Verdict,
    decide,
    opens_turn,
)
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.intake.filing import is_debounced, overflow_of, receipt_of, row_of
from wakeful.intake.reset_times import NO_RESETS, ResetTimes
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Reset, Session, SessionPolicy
from wakeful.turns import turns
from wakeful.turns.turns import Interrupt, Turn
from wakeful.vocabulary import queueing
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.queueing import Drop, QueueOverrides, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import (
    CAPPED,
    GUARDED,
    HUMAN,
    INNER,
    OPERATOR,
    Draft,
    Receipt,
    State,
    Stimulus,
)


class IntakeRules(Record):
    """The limits and levels that intake applies."""

    queue: QueueOverrides = queueing.NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}
    storm: StormLimits = StormLimits()
    max_chain_depth: int = 16
    reset: ResetTimes = NO_RESETS


@dataclass
class _Work:
    """What is known of one lane while a group of drafts is accepted."""

    lane: Lane
    session: SessionPolicy
    turn: Turn | None
    sleep: Sleep | None
    waiting: int = 0
    capped: int = 0
    is_human: bool = False  # a person spoke
    is_reset: bool = False  # a new transcript begins with one of the drafts
    added: list[Stimulus] = field(default_factory=list[Stimulus])


class Acceptance:
    """The accepting transaction, over as many drafts as share a commit."""

    def __init__(
        self, bus: Bus, ids: Ids, agents: Agents, bindings: Bindings, rules: IntakeRules
    ) -> None:
        self._bus = bus
        self._bindings = bindings
        self._ids = ids
        self._agents = agents
        self._rules = rules

    def run(self, tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        """Accept drafts in order; the lanes that exist are locked by the caller's group."""
        claims = self._claim_keys(tx, drafts)
        works = self._look(
            tx,
            [draft for draft, claim in zip(drafts, claims, strict=True) if isinstance(claim, str)],
        )
        halted = halts.scopes(tx)
        receipts: list[Receipt] = []
        told: dict[str, Receipt] = {}
        for draft, claim in zip(drafts, claims, strict=True):
            if isinstance(claim, str):
                work = works[draft.session_key]
                is_halted = halts.covers(halted, work.lane.agent_id)
                told[claim] = self._accept(tx, draft, claim, work, is_halted=is_halted)
                receipts.append(told[claim])
            else:
                receipts.append(dedup.repeated(claim, draft, told.get(claim.stimulus_id)))
        keyed = [
            (draft, told[claim])
            for draft, claim in zip(drafts, claims, strict=True)
            if isinstance(claim, str) and draft.dedup_key is not None
        ]
        dedup.keep_receipts(tx, keyed)
        self._write(tx, works)
        return receipts

    def _claim_keys(self, tx: Tx, drafts: Sequence[Draft]) -> list[str | dedup.First]:
        """Return, per draft, its new id, or the stimulus that has its dedup key already."""
        claims: list[str | dedup.First] = [self._ids.stimulus() for _ in drafts]
        keyed = [
            (dedup.scope_of(draft), draft.dedup_key, index)
            for index, draft in enumerate(drafts)
            if draft.dedup_key is not None
        ]
        for _, _, index in sorted(keyed):  # so that two nodes never wait for each other's keys
            new_id = claims[index]
            assert isinstance(new_id, str)
            claims[index] = dedup.claim(tx, drafts[index], new_id) or new_id
        return claims

    def _look(self, tx: Tx, drafts: Sequence[Draft]) -> dict[str, _Work]:
        """Read everything the decisions depend on, making lanes and sessions that are new."""
        firsts = {draft.session_key: draft for draft in reversed(drafts)}
        session_keys = sorted(firsts)
        found = lanes.get_all(tx, session_keys)
        # A lane that another node made after this group took its locks is not ours yet either.
        new = [key for key in session_keys if key not in found or not tx.holds(lanes.lock(key))]
        if new:
            lanes.add_missing(tx, new)
            found |= lanes.get_all(tx, new)
        rows = sessions.policies(tx, session_keys)
        unknown = [key for key in session_keys if key not in rows]
        if unknown:
            self._refuse_strangers(tx, [firsts[key] for key in unknown])
            sessions.add_missing(tx, [self._new_session(tx, firsts[key]) for key in unknown])
            rows |= sessions.policies(tx, unknown)
            for key in unknown:
                self._publish(tx, "session.created", key)
        turn_ids = [lane.turn_id for lane in found.values() if lane.turn_id is not None]
        open_turns = turns.get_all(tx, turn_ids) if turn_ids else {}
        asleep = sleeps.get_all(tx, session_keys)
        works = {
            key: _Work(lane, rows[key], open_turns.get(lane.turn_id or ""), asleep.get(key))
            for key, lane in found.items()
        }
        for key, (total, capped) in stimuli.count_waiting(tx, session_keys).items():
            works[key].waiting, works[key].capped = total, capped
        return works

    def _refuse_strangers(self, tx: Tx, drafts: Sequence[Draft]) -> None:
        """Keep the name of a deleted session for its owner: ledgers and events remember it."""
        owned = [draft for draft in drafts if draft.owner != OPERATOR]
        past = sessions.past_owners(tx, [draft.session_key for draft in owned]) if owned else {}
        for draft in owned:
            if past.get(draft.session_key, draft.owner) != draft.owner:
                raise NotFound("session_key", f"no session {draft.session_key!r}")

    def _new_session(self, tx: Tx, draft: Draft) -> Session:
        transcript_id = self._ids.new("tr")
        return Session(
            key=draft.session_key,
            agent_id=keys.agent_of(draft.session_key),
            transcript_id=transcript_id,
            branch=transcript_id,
            created_at=tx.now,
            started_at=tx.now,
            binding=draft.binding,
            owner=draft.makes_for or draft.owner,
            parent=keys.parent(SessionKey(draft.session_key)),
        )

    def _accept(
        self, tx: Tx, draft: Draft, stimulus_id: str, work: _Work, *, is_halted: bool
    ) -> Receipt:
        if draft.owner not in (OPERATOR, work.session.owner):
            # Said as if it did not exist: whose session this is, is nobody else's business.
            raise NotFound("session_key", f"no session {draft.session_key!r}")
        if draft.route is None and draft.origin in INNER:
            draft = replace(draft, route=work.session.route)
        begins = self._begins(draft, work.session, tx.now)
        settings = self.queue_settings(work.session, draft)
        if work.turn is not None and (begins is not None or work.session.resets):
            settings = queueing.never_joining(settings)
        arrival = arrival_of(draft, tx.now)
        facts = lane_facts(
            work.lane,
            work.turn,
            work.sleep,
            is_halted=is_halted,
            now=tx.now,
            is_full=work.capped >= settings.cap,
        )
        decision = decide(arrival, facts, settings, self._guard(tx, draft, arrival, work))
        if decision.drops_oldest:
            self._drop_oldest(tx, work, settings)
        stimulus = row_of(tx, draft, stimulus_id, work.lane, decision, settings)
        receipt = receipt_of(stimulus, decision, work.turn, work.waiting)
        self._apply(tx, draft, decision, settings, work)
        if begins is not None and stimulus.state is not State.SUPPRESSED:
            reset = Reset(from_seq=stimulus.seq, by=begins)
            work.session = replace(work.session, resets=(*work.session.resets, reset))
            work.is_reset = True
        work.added.append(stimulus)
        self._announce(tx, stimulus, receipt)
        return receipt

    def _begins(self, draft: Draft, session: SessionPolicy, now: int) -> str | None:
        """Return the command or the rule by which a new transcript begins with this draft."""
        if draft.begins is not None or draft.origin not in HUMAN:
            return draft.begins
        return self._rules.reset.due(session.last_human_at, now)

    def queue_settings(self, session: SessionPolicy, what: Draft | Stimulus) -> QueueSettings:
        """Resolve inline > session > door > agent > global > default, each key on its own.

        The queue block of the binding that opened the session stands in for the agent's.
        """
        inline, own_door = _own_queue(what)
        door = None if what.route is None else self._rules.doors.get(what.route.door)
        binding = self._bindings.get(session.binding)
        agent = self._agents.get(session.agent_id).queue
        own = agent if binding is None or binding.queue is None else binding.queue
        return queueing.resolve(inline, session.queue, door, own, self._rules.queue, own_door)

    def _guard(self, tx: Tx, draft: Draft, arrival: Arrival, work: _Work) -> Guard:
        if draft.depth > self._rules.max_chain_depth:
            root_id = draft.root_id or ""
            self._flush(tx, work)
            if not stimuli.is_loop_known(tx, root_id):
                self._publish(tx, "loop.cut", draft.session_key, root_id=root_id, depth=draft.depth)
            return Guard(verdict=Verdict.LOOP)
        if draft.origin in GUARDED and opens_turn(arrival):
            storm = storms.note(tx, draft.source, draft.session_key, self._rules.storm)
            if storm.is_new:
                self._publish(tx, "storm.started", draft.session_key, source=draft.source)
            if storm.is_tripped:
                return Guard(verdict=Verdict.STORM)
        return Guard()

    def _drop_oldest(self, tx: Tx, work: _Work, settings: QueueSettings) -> None:
        """Make room under the cap; what goes is recorded, and a line of it is kept if wanted."""
        self._flush(tx, work)
        oldest = stimuli.oldest_capped(tx, work.lane.session_key)
        if oldest is None:
            return
        stimuli.move(tx, [oldest.id], State.SUPPRESSED, "queue-cap")
        work.capped -= 1
        work.waiting -= 1
        if settings.drop is Drop.SUMMARIZE:
            work.lane = replace(
                work.lane, overflow=overflow_of(work.lane.overflow, oldest, settings)
            )
        self._publish(tx, "stimulus.suppressed", oldest.session_key, oldest.id, reason="queue-cap")

    def _apply(
        self, tx: Tx, draft: Draft, decision: Decision, settings: QueueSettings, work: _Work
    ) -> None:
        """Write what the decision does to others: the running turn, the sleep, the window."""
        lane = replace(work.lane, seq=work.lane.seq + 1)
        if decision.action in WAITS:
            work.waiting += 1
            work.capped += draft.origin in CAPPED
            if is_debounced(draft, decision, settings):
                is_open = lane.debounce_until is not None and lane.debounce_until > tx.now
                since = lane.debounce_from if is_open and lane.debounce_from else tx.now
                until = min(tx.now + settings.debounce_ms, since + settings.debounce_max_ms)
                lane = replace(lane, debounce_from=since, debounce_until=until)
        work.lane = lane
        if draft.origin in HUMAN:
            work.is_human = True
            route = work.session.route if draft.route is None else draft.route
            work.session = replace(work.session, route=route, last_human_at=tx.now)
        if decision.interrupt is not Interrupt.NONE and work.turn is not None:
            turns.interrupt(tx, work.turn.id, decision.interrupt)
            lanes.resume(tx, lane.session_key, tx.now)  # a turn without a task needs one to end
            work.turn = replace(work.turn, interrupt=decision.interrupt)
        if work.sleep is not None:
            self._disturb(tx, decision, work, work.sleep)

    def _disturb(self, tx: Tx, decision: Decision, work: _Work, sleep: Sleep) -> None:
        """End a sleep, or count what it kept out."""
        if decision.wakes:
            sleeps.end(tx, sleep.owner)
            work.sleep = None
            session_key = work.lane.session_key
            self._publish(
                tx,
                "sleep.woken",
                session_key,
                reason="interrupted",
                slept_ms=tx.now - sleep.created_at,
            )
            self._flush(tx, work)
            for stimulus_id in stimuli.unpark(tx, session_key, "asleep"):
                self._publish(tx, "stimulus.pending", session_key, stimulus_id, reason="woken")
        elif decision.reason == "asleep":
            sleeps.count(
                tx,
                sleep.owner,
                buffered=int(decision.action is Action.PARK),
                dropped=int(decision.action is Action.SUPPRESS),
            )

    def _announce(self, tx: Tx, stimulus: Stimulus, receipt: Receipt) -> None:
        data: dict[str, object] = {
            "origin": stimulus.origin.value,
            "source": stimulus.source,
            "priority": stimulus.priority.name.lower(),
            "outcome": receipt.outcome.value,
        }
        if receipt.reason is not None:
            data["reason"] = receipt.reason
        kinds = ["stimulus.accepted"]
        if stimulus.state is not State.PENDING:
            kinds.append(f"stimulus.{stimulus.state.value}")
        for kind in kinds:
            self._publish(tx, kind, stimulus.session_key, stimulus.id, **data)

    def _write(self, tx: Tx, works: dict[str, _Work]) -> None:
        changed = list(works.values())
        stimuli.add(tx, [row for work in changed for row in work.added])
        lanes.note_accepted(tx, [work.lane for work in changed])
        sessions.note_humans(
            tx,
            [work.session for work in changed if work.is_human],
        )
        for work in changed:
            if work.is_reset:
                sessions.set_resets(tx, work.session.key, work.session.resets)
            lanes.touch(tx, work.lane.session_key)

    def _publish(
        self,
        tx: Tx,
        kind: str,
        session_key: str,
        stimulus_id: str | None = None,
        **data: object,
    ) -> None:
        self._bus.publish(
            tx, Event(kind=kind, session_key=session_key, stimulus_id=stimulus_id, data=data)
        )

    def _flush(self, tx: Tx, work: _Work) -> None:
        """Write the rows of a lane that statements about it must see."""
        stimuli.add(tx, work.added)
        work.added.clear()


def _own_queue(what: Draft | Stimulus) -> tuple[QueueOverrides | None, QueueOverrides | None]:
    """Return what a message says of its own queueing, and what its door says where nobody does.

    A stimulus that was accepted has kept its mode; the rest has had its effect.
    """
    if isinstance(what, Stimulus):
        return None if what.mode is None else QueueOverrides(mode=what.mode), None
    return what.queue, QueueOverrides(debounce_ms=what.debounce_ms) if what.debounce_ms else None
