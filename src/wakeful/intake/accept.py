"""Accept many drafts in one transaction: dedup, guards, sleep, decide, insert, events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from wakeful.access import rules as access
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import halts, storms
from wakeful.gate.storms import StormLimits
from wakeful.gate.wakes import PASSED, GateVerdict, MayWake, Verdict, Wake
from wakeful.intake import dedup, waking
from wakeful.intake.decide import (
    WAITS,
    Action,
    Arrival,
    Decision,
    decide,
    opens_turn,
)
from wakeful.intake.draft import AttachmentLimits
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.intake.filing import is_debounced, overflow_of, receipt_of, row_of
from wakeful.intake.queue_rules import QueueRules
from wakeful.intake.reset_times import NO_RESETS, ResetTimes
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, WokenBy
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Reset, Session, SessionPolicy
from wakeful.turns import turns
from wakeful.turns.turns import Interrupt, Turn
from wakeful.vocabulary import queueing
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Answer, Asleep
from wakeful.vocabulary.queueing import Drop, QueueOverrides, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import Draft, Receipt, State, Stimulus

SESSION_DELETED = "session-deleted"


class IntakeRules(Record):
    """The limits and levels that intake applies."""

    queue: QueueOverrides = queueing.NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}
    storm: StormLimits = StormLimits()
    max_chain_depth: int = 16
    reset: ResetTimes = NO_RESETS
    attachments: AttachmentLimits = AttachmentLimits()


@dataclass
class _Work:
    """What is known of one lane while a group of drafts is accepted."""

    lane: Lane
    session: SessionPolicy
    turn: Turn | None
    sleep: Sleep | None
    is_halted: bool
    waiting: int = 0
    capped: int = 0
    has_spoken: bool = False  # somebody spoke: answers go there from now on
    is_reset: bool = False  # a new transcript begins with one of the drafts
    added: list[Stimulus] = field(default_factory=list[Stimulus])
    suppressed: list[tuple[str, Decision]] = field(default_factory=list[tuple[str, Decision]])


class Acceptance:
    """The accepting transaction, over as many drafts as share a commit."""

    def __init__(
        self,
        bus: Bus,
        ids: Ids,
        queue: QueueRules,
        rules: IntakeRules,
        *,
        settlement: Settlement,
        may_wake: MayWake,
    ) -> None:
        self._bus = bus
        self._settlement = settlement
        self._may_wake = may_wake
        self._ids = ids
        self._queue = queue
        self._rules = rules

    def follow(self, rules: IntakeRules) -> None:
        """Accept by other rules from now on."""
        self._rules = rules

    def run(self, tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        """Accept drafts in order; the lanes that exist are locked by the caller's group."""
        claims = self._claim_keys(tx, drafts)
        works = self._look(
            tx,
            [draft for draft, claim in zip(drafts, claims, strict=True) if isinstance(claim, str)],
        )
        verdicts = self._ask_gate(tx, drafts, claims, works)
        receipts: list[Receipt] = []
        told: dict[str, Receipt] = {}
        for draft, claim in zip(drafts, claims, strict=True):
            if isinstance(claim, str):
                work = works.get(draft.session_key)
                told[claim] = (
                    self._file_for_nobody(tx, draft, claim)
                    if work is None
                    else self._accept(tx, draft, claim, work, verdicts.get(claim, PASSED))
                )
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
        """Read everything the decisions depend on, making lanes and sessions that are new.

        A session that is not there, and that nothing here may make, has no work.
        """
        rows = sessions.policies(tx, sorted({draft.session_key for draft in drafts}))
        makers = {
            draft.session_key: draft
            for draft in reversed(drafts)
            if draft.session_key not in rows and may_make_session(draft)
        }
        session_keys = sorted({*rows, *makers})
        found = self._lanes(tx, session_keys)
        if makers:
            self._make_sessions(tx, makers)
            rows |= sessions.policies(tx, sorted(makers))
        turn_ids = [lane.turn_id for lane in found.values() if lane.turn_id is not None]
        open_turns = turns.get_all(tx, turn_ids) if turn_ids else {}
        asleep = sleeps.get_all(tx, session_keys)
        halted = halts.scopes(tx)
        works = {
            key: _Work(
                lane,
                rows[key],
                open_turns.get(lane.turn_id or ""),
                asleep.get(key),
                is_halted=halts.covers(halted, lane.agent_id),
            )
            for key, lane in found.items()
        }
        for key, (total, capped) in stimuli.count_waiting(tx, session_keys).items():
            works[key].waiting, works[key].capped = total, capped
        return works

    def _lanes(self, tx: Tx, session_keys: Sequence[str]) -> dict[str, Lane]:
        found = lane_rows.get_all(tx, session_keys)
        # A lane that another node made after this group took its locks is not ours yet either.
        new = [key for key in session_keys if key not in found or not tx.holds(lane_rows.lock(key))]
        if new:
            lane_rows.add_missing(tx, new)
            found |= lane_rows.get_all(tx, new)
        return found

    def open(self, tx: Tx, draft: Draft) -> None:
        """Make the session of a draft if it is not there, and leave the draft itself alone."""
        key = draft.session_key
        self._lanes(tx, [key])
        found = sessions.policies(tx, [key])
        if not found:
            self._make_sessions(tx, {key: draft})
        elif not access.may_write(draft.owner, found[key].owner):
            raise NotFound("session_key", f"no session {key!r}")

    def _make_sessions(self, tx: Tx, makers: dict[str, Draft]) -> None:
        self._refuse_strangers(tx, list(makers.values()))
        sessions.add_missing(tx, [self._new_session(tx, makers[key]) for key in sorted(makers)])
        for key in sorted(makers):
            self._bus.publish(tx, "session.created", key)

    def _file_for_nobody(self, tx: Tx, draft: Draft, stimulus_id: str) -> Receipt:
        """Keep that something of the runtime's own came too late for its session."""
        decision = Decision(action=Action.SUPPRESS, reason=SESSION_DELETED)
        agent_id = keys.agent_of(draft.session_key)
        lane = Lane(session_key=draft.session_key, agent_id=agent_id, pool="")
        stimulus = row_of(tx, draft, stimulus_id, lane, decision, queueing.DEFAULTS)
        stimuli.add(tx, [stimulus])
        receipt = receipt_of(stimulus, decision, None, 0)
        self._announce(tx, stimulus, receipt)
        self._settlement.settle(tx, [stimulus_id], State.SUPPRESSED, SESSION_DELETED)
        return receipt

    def _refuse_strangers(self, tx: Tx, drafts: Sequence[Draft]) -> None:
        """Keep the name of a deleted session for its owner: ledgers and events remember it."""
        owned = [draft for draft in drafts if not access.sees_all(draft.owner)]
        past = sessions.past_owners(tx, [draft.session_key for draft in owned]) if owned else {}
        for draft in owned:
            holder = past.get(draft.session_key)
            if holder is not None and not access.may_write(draft.owner, holder):
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
            parent=(parent := keys.parent(SessionKey(draft.session_key))),
            parent_kind=None if parent is None else "thread",
        )

    def _accept(
        self, tx: Tx, draft: Draft, stimulus_id: str, work: _Work, gate: GateVerdict
    ) -> Receipt:
        if not access.may_write(draft.owner, work.session.owner):
            # Said as if it did not exist: whose session this is, is nobody else's business.
            raise NotFound("session_key", f"no session {draft.session_key!r}")
        if draft.route is None and draft.kind.rule.answer is Answer.SESSION:
            draft = replace(draft, route=work.session.route)
        begins = self._begins(draft, work.session, tx.now)
        settings = self._queue.of(work.session, draft)
        if work.turn is not None and (begins is not None or work.session.resets):
            settings = queueing.never_joining(settings)
        arrival = arrival_of(draft, tx.now)
        facts = lane_facts(
            work.lane,
            work.turn,
            work.sleep,
            is_halted=work.is_halted,
            now=tx.now,
            is_full=work.capped >= settings.cap,
        )
        decision = decide(arrival, facts, settings, self._guard(tx, draft, arrival, work) or gate)
        if decision.drops_oldest:
            self._drop_oldest(tx, work, settings)
        stimulus = row_of(tx, draft, stimulus_id, work.lane, decision, settings)
        receipt = receipt_of(stimulus, decision, work.turn, work.waiting)
        self._apply(tx, draft, decision, settings, work)
        if begins is not None and decision.action is not Action.SUPPRESS:
            reset = Reset(from_seq=stimulus.seq, by=begins)
            work.session = replace(work.session, resets=(*work.session.resets, reset))
            work.is_reset = True
        work.added.append(stimulus)
        if decision.action is Action.SUPPRESS:
            work.suppressed.append((stimulus.id, decision))
        self._announce(tx, stimulus, receipt)
        return receipt

    def _begins(self, draft: Draft, session: SessionPolicy, now: int) -> str | None:
        """Return the command or the rule by which a new transcript begins with this draft."""
        if draft.begins is not None or not draft.kind.rule.is_person:
            return draft.begins
        return self._rules.reset.due(session.last_human_at, now)

    def _ask_gate(
        self,
        tx: Tx,
        drafts: Sequence[Draft],
        claims: Sequence[str | dedup.First],
        works: Mapping[str, _Work],
    ) -> dict[str, GateVerdict]:
        """Ask once for everything that would open a turn; return the verdicts by id."""
        wakes = {
            claim: Wake(
                agent_id=work.lane.agent_id,
                session_key=draft.session_key,
                kind=draft.kind,
                priority=draft.priority,
                trust=draft.trust,
                source=draft.source,
                root_id=draft.root_id or claim,
            )
            for draft, claim in zip(drafts, claims, strict=True)
            if isinstance(claim, str)
            and (work := works.get(draft.session_key)) is not None
            and opens_turn(arrival_of(draft, tx.now))
        }
        return dict(zip(wakes, self._may_wake(tx, list(wakes.values())), strict=True))

    def _guard(self, tx: Tx, draft: Draft, arrival: Arrival, work: _Work) -> GateVerdict | None:
        """Ask the guards against loops and storms, which go before the gate."""
        if draft.depth > self._rules.max_chain_depth:
            root_id = draft.root_id or ""
            self._flush(tx, work)
            if not stimuli.is_loop_known(tx, root_id):
                self._bus.publish(
                    tx, "loop.cut", draft.session_key, root_id=root_id, depth=draft.depth
                )
            return GateVerdict(verdict=Verdict.LOOP)
        if opens_turn(arrival) and draft.kind.rule.is_guarded:
            storm = storms.note(tx, draft.source, draft.session_key, self._rules.storm)
            if storm.is_new:
                self._bus.publish(tx, "storm.started", draft.session_key, source=draft.source)
            if storm.is_tripped:
                return GateVerdict(verdict=Verdict.STORM)
        return None

    def _drop_oldest(self, tx: Tx, work: _Work, settings: QueueSettings) -> None:
        """Make room under the cap; what goes is recorded, and a line of it is kept if wanted."""
        self._flush(tx, work)
        oldest = stimuli.oldest_capped(tx, work.lane.session_key)
        if oldest is None:
            return
        self._settlement.settle(tx, [oldest.id], State.SUPPRESSED, "queue-cap")
        work.capped -= 1
        work.waiting -= 1
        if settings.drop is Drop.SUMMARIZE:
            work.lane = replace(
                work.lane, overflow=overflow_of(work.lane.overflow, oldest, settings)
            )

    def _apply(
        self, tx: Tx, draft: Draft, decision: Decision, settings: QueueSettings, work: _Work
    ) -> None:
        """Write what the decision does to others: the running turn, the sleep, the window."""
        lane = replace(work.lane, seq=work.lane.seq + 1)
        if decision.action in WAITS:
            work.waiting += 1
            work.capped += draft.kind.rule.is_capped
            if is_debounced(draft, decision, settings):
                is_open = lane.debounce_until is not None and lane.debounce_until > tx.now
                since = lane.debounce_from if is_open and lane.debounce_from else tx.now
                until = min(tx.now + settings.debounce_ms, since + settings.debounce_max_ms)
                lane = replace(lane, debounce_from=since, debounce_until=until)
        work.lane = lane
        if draft.kind.rule.moves_route:
            work.has_spoken = True
            route = work.session.route if draft.route is None else draft.route
            heard_at = tx.now if draft.kind.rule.is_person else work.session.last_human_at
            work.session = replace(
                work.session,
                route=route,
                last_human_at=heard_at,
                display_name=draft.display_name or work.session.display_name,
                subject=draft.subject or work.session.subject,
            )
        if decision.interrupt is not Interrupt.NONE and work.turn is not None:
            turns.interrupt(tx, work.turn.id, decision.interrupt)
            lane_rows.resume(tx, lane.session_key, tx.now)  # a turn without a task needs one to end
            work.turn = replace(work.turn, interrupt=decision.interrupt)
        if work.sleep is not None:
            self._disturb(tx, draft, decision, work)

    def _disturb(self, tx: Tx, draft: Draft, decision: Decision, work: _Work) -> None:
        """End a sleep, or count what it kept out; its own wake ends it when it opens a turn."""
        sleep = work.sleep
        assert sleep is not None
        if decision.wakes and draft.kind.rule.asleep is not Asleep.ENDS:
            self._flush(tx, work)
            waking.end(tx, self._bus, sleep, work.lane.session_key, WokenBy.INTERRUPTED)
            work.sleep = None
        elif decision.reason == "asleep":
            sleeps.count(
                tx,
                sleep.owner,
                buffered=int(decision.action is Action.PARK),
                dropped=int(decision.action is Action.SUPPRESS),
            )

    def _announce(self, tx: Tx, stimulus: Stimulus, receipt: Receipt) -> None:
        data: dict[str, Any] = {
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
            self._bus.publish(tx, kind, stimulus.session_key, stimulus_id=stimulus.id, **data)

    def _write(self, tx: Tx, works: dict[str, _Work]) -> None:
        changed = list(works.values())
        stimuli.add(tx, [row for work in changed for row in work.added])
        self._suppress(tx, changed)
        lane_rows.note_accepted(tx, [work.lane for work in changed])
        sessions.note_spoken(tx, [work.session for work in changed if work.has_spoken])
        for work in changed:
            if work.is_reset:
                sessions.set_resets(tx, work.session.key, work.session.resets)
            lane_rows.touch(tx, work.lane.session_key)

    def _flush(self, tx: Tx, work: _Work) -> None:
        """Write the rows of a lane that statements about it must see."""
        stimuli.add(tx, work.added)
        work.added.clear()
        self._suppress(tx, [work])

    def _suppress(self, tx: Tx, works: Sequence[_Work]) -> None:
        """End what was refused as it came; the rows are written."""
        refused: dict[str, dict[str, int | None]] = {}  # by reason: when to look again, by id
        for work in works:
            for stimulus_id, decision in work.suppressed:
                times = refused.setdefault(decision.reason or "suppressed", {})
                times[stimulus_id] = decision.look_at
            work.suppressed.clear()
        for reason, look_at in refused.items():
            self._settlement.settle(tx, look_at.keys(), State.SUPPRESSED, reason, look_at=look_at)


def may_make_session(draft: Draft) -> bool:
    """Tell whether a session that is not there is made for a draft.

    What the runtime files by itself revives nothing that somebody deleted, but for the sessions
    that are its own.
    """
    rule = draft.kind.rule
    if not rule.is_inner:
        return True
    kind = keys.parse(SessionKey(draft.session_key)).kind
    return kind in (KeyKind.MAIN, KeyKind.ACTIVITY) or kind.value == rule.makes
