"""Accept many drafts in one transaction: dedup, guards, sleep, decide, insert, events."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from wakeful.access import rules as access
from wakeful.broker import inbox_counts, lane_rows, stimuli
from wakeful.broker.inbox_counts import InboxRoom
from wakeful.broker.lane_rows import Lane
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import storms
from wakeful.gate.wakes import PASSED, GateVerdict, MayWake, Verdict, Wake
from wakeful.intake import dedup, waking
from wakeful.intake.decide import (
    WAITS,
    Action,
    Arrival,
    Decision,
    decide,
    is_inbox_item,
    opens_turn,
)
from wakeful.intake.draft import AttachmentLimits
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.intake.filing import is_debounced, overflow_of, receipt_of, row_of
from wakeful.intake.inbox_items import expire_in_time
from wakeful.intake.lane_work import LaneWork, LaneWorks
from wakeful.intake.queue_rules import QueueRules
from wakeful.intake.reset_times import NO_RESETS, ResetTimes
from wakeful.notices.notices import Notices
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import WokenBy
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Reset, SessionPolicy
from wakeful.turns import turns
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary import queueing
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.inbox import InboxRules
from wakeful.vocabulary.kinds import Answer, Asleep, Held
from wakeful.vocabulary.queueing import Drop, QueueOverrides, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import (
    Draft,
    Outcome,
    Priority,
    Receipt,
    State,
    Stimulus,
    StormLimits,
)
from wakeful.vocabulary.text import one_line

SESSION_DELETED = "session-deleted"
_PUT_ASIDE = frozenset({Action.HOLD, Action.PARK})  # it waits for as long as it takes
_LOOP_CUT = "A chain of turns that set each other off had become too long, and was ended."


class IntakeRules(Record):
    """The limits and levels that intake applies."""

    queue: QueueOverrides = queueing.NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}
    storm: StormLimits = StormLimits()
    max_chain_depth: int = 16
    reset: ResetTimes = NO_RESETS
    attachments: AttachmentLimits = AttachmentLimits()
    inbox: InboxRules = InboxRules()


class Acceptance:
    """The accepting transaction, over as many drafts as share a commit."""

    def __init__(
        self,
        bus: Bus,
        ids: Ids,
        works: LaneWorks,
        queue: QueueRules,
        rules: IntakeRules,
        *,
        settlement: Settlement,
        may_wake: MayWake,
    ) -> None:
        self._bus = bus
        self._notices = Notices(bus, ids)
        self._settlement = settlement
        self._may_wake = may_wake
        self._ids = ids
        self._works = works
        self._queue = queue
        self._rules = rules

    def follow(self, rules: IntakeRules) -> None:
        """Accept by other rules from now on."""
        self._rules = rules

    def run(self, tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        """Accept drafts in order; the lanes that exist are locked by the caller's group."""
        claims = self._claim_keys(tx, drafts)
        works = self._works.look(
            tx,
            [draft for draft, claim in zip(drafts, claims, strict=True) if isinstance(claim, str)],
        )
        verdicts = self._ask_gate(tx, drafts, claims, works)
        room = InboxRoom(tx)
        receipts: list[Receipt] = []
        receipts_by_id: dict[str, Receipt] = {}
        for draft, claim in zip(drafts, claims, strict=True):
            if isinstance(claim, str):
                work = works.get(draft.session_key)
                receipts_by_id[claim] = (
                    self._file_for_nobody(tx, draft, claim)
                    if work is None
                    else self._accept(tx, draft, claim, work, verdicts.get(claim, PASSED), room)
                )
                receipts.append(receipts_by_id[claim])
            else:
                receipts.append(dedup.repeated(claim, draft, receipts_by_id.get(claim.stimulus_id)))
        keyed = [
            (draft, receipts_by_id[claim])
            for draft, claim in zip(drafts, claims, strict=True)
            if isinstance(claim, str)
            and draft.dedup_key is not None
            and receipts_by_id[claim].outcome is not Outcome.REFUSED
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

    def _file_for_nobody(self, tx: Tx, draft: Draft, stimulus_id: str) -> Receipt:
        """Keep that something of the runtime's own came too late for its session."""
        return self._file_suppressed(tx, [(stimulus_id, draft, SESSION_DELETED)])[0]

    def refuse(self, tx: Tx, refused: Sequence[tuple[Draft, str]]) -> list[Receipt]:
        """Keep that nothing came of what is the runtime's own, and why."""
        return self._file_suppressed(
            tx, [(self._ids.stimulus(), draft, reason) for draft, reason in refused]
        )

    def _file_suppressed(self, tx: Tx, refused: Sequence[tuple[str, Draft, str]]) -> list[Receipt]:
        """File what is over at once; no lane hears of it, and no session is made for it."""
        rows: list[Stimulus] = []
        receipts: list[Receipt] = []
        by_reason: dict[str, list[str]] = {}
        for stimulus_id, draft, reason in refused:
            decision = Decision(action=Action.SUPPRESS, reason=reason)
            agent_id = keys.agent_of(draft.session_key)
            lane = Lane(session_key=draft.session_key, agent_id=agent_id, pool="")
            stimulus = row_of(tx, draft, stimulus_id, lane, decision, queueing.DEFAULTS)
            rows.append(stimulus)
            receipts.append(receipt_of(stimulus, decision, None, 0))
            by_reason.setdefault(reason, []).append(stimulus_id)
        stimuli.add(tx, rows)
        for stimulus, receipt in zip(rows, receipts, strict=True):
            self._announce(tx, stimulus, receipt)
        for reason, ids in by_reason.items():
            self._settlement.settle(tx, ids, State.SUPPRESSED, reason)
        return receipts

    def _accept(
        self,
        tx: Tx,
        draft: Draft,
        stimulus_id: str,
        work: LaneWork,
        gate: GateVerdict,
        room: InboxRoom,
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
        guarded = self._guard(tx, draft, arrival, work)
        decision = decide(arrival, facts, settings, guarded or gate)
        in_inbox = is_inbox_item(arrival) or decision.action is Action.HOLD
        if in_inbox and decision.action in _PUT_ASIDE and not _has_room(draft, room):
            return self._turn_away(tx, draft, stimulus_id)
        if guarded is not None and decision.action is Action.HOLD:
            draft = replace(draft, priority=Priority.NEXT)
        if decision.drops_oldest:
            self._drop_oldest(tx, work, settings)
        stimulus = row_of(tx, draft, stimulus_id, work.lane, decision, settings, in_inbox=in_inbox)
        receipt = receipt_of(
            stimulus, decision, work.turn, work.waiting, is_unpriced=gate.is_unpriced
        )
        self._apply(tx, draft, decision, settings, work)
        if begins is not None and decision.action is not Action.SUPPRESS:
            reset = Reset(from_seq=stimulus.seq, by=begins)
            work.session = replace(work.session, resets=(*work.session.resets, reset))
            work.is_reset = True
        work.added.append(stimulus)
        if decision.action is Action.SUPPRESS:
            work.suppressed.append((stimulus.id, decision))
        self._announce(tx, stimulus, receipt)
        if in_inbox:
            room.take(_counted_as(draft))
            self._tell_inbox(tx, stimulus, decision)
        return receipt

    def _turn_away(self, tx: Tx, draft: Draft, stimulus_id: str) -> Receipt:
        """Keep nothing of a draft, not even its key: its sender may come again."""
        if draft.dedup_key is not None:
            dedup.release(tx, draft, stimulus_id)
        return Receipt(stimulus_id="", session_key=draft.session_key, outcome=Outcome.REFUSED)

    def _tell_inbox(self, tx: Tx, stimulus: Stimulus, decision: Decision) -> None:
        if decision.action is Action.SUPPRESS:
            return  # nothing comes of it
        if stimulus.expires_at is not None:
            expire_in_time(tx, stimulus)
        self._bus.publish(
            tx,
            "inbox.item",
            stimulus.session_key,
            stimulus_id=stimulus.id,
            id=stimulus.id,
            priority=stimulus.priority.name.lower(),
            source=stimulus.source,
            created_at=stimulus.accepted_at,
        )

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
        works: Mapping[str, LaneWork],
    ) -> dict[str, GateVerdict]:
        """Ask once for everything that would open a turn; return the verdicts by id."""
        wakes = {
            claim: Wake(
                id=claim,
                agent_id=work.lane.agent_id,
                session_key=draft.session_key,
                kind=draft.kind,
                priority=draft.priority,
                trust=draft.trust,
                source=draft.source,
                root_id=draft.root_id or claim,
                depth=draft.depth,
                ignores_quiet_hours=draft.ignores_quiet_hours,
            )
            for draft, claim in zip(drafts, claims, strict=True)
            if isinstance(claim, str)
            and (work := works.get(draft.session_key)) is not None
            and opens_turn(arrival_of(draft, tx.now))
        }
        return dict(zip(wakes, self._may_wake(tx, list(wakes.values())), strict=True))

    def _guard(self, tx: Tx, draft: Draft, arrival: Arrival, work: LaneWork) -> GateVerdict | None:
        """Ask the guards against loops and storms, which go before the gate."""
        if draft.depth > self._rules.max_chain_depth:
            root_id = draft.root_id or ""
            self._flush(tx, work)
            if not stimuli.is_loop_known(tx, root_id):
                self._bus.publish(
                    tx, "loop.cut", draft.session_key, root_id=root_id, depth=draft.depth
                )
                key, agent_id = work.lane.session_key, work.lane.agent_id
                self._notices.add(tx, "loop", root_id, "", _LOOP_CUT, agent_id, session_key=key)
            return GateVerdict(verdict=Verdict.LOOP)
        if opens_turn(arrival) and draft.kind.rule.is_guarded:
            limits = draft.storm.over(self._rules.storm)
            storm = storms.note(tx, _counted_as(draft), _stormy_place(draft), limits)
            if storm.is_new:
                self._tell_storm(tx, draft, work.lane.agent_id)
            if storm.is_tripped:
                return GateVerdict(verdict=Verdict.STORM)
        return None

    def _tell_storm(self, tx: Tx, draft: Draft, agent_id: str) -> None:
        source, key = draft.source, draft.session_key
        self._bus.publish(tx, "storm.started", key, source=source)
        text = f"{one_line(source, 80)} opens too many turns in {key}; the rest waits in the inbox."
        episode = f"{draft.kind.value} {key} {tx.now}"
        self._notices.add(tx, "storm", source, episode, text, agent_id, session_key=key)

    def _drop_oldest(self, tx: Tx, work: LaneWork, settings: QueueSettings) -> None:
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
        self, tx: Tx, draft: Draft, decision: Decision, settings: QueueSettings, work: LaneWork
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

    def _disturb(self, tx: Tx, draft: Draft, decision: Decision, work: LaneWork) -> None:
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

    def _write(self, tx: Tx, works: dict[str, LaneWork]) -> None:
        changed = list(works.values())
        stimuli.add(tx, [row for work in changed for row in work.added])
        self._suppress(tx, changed)
        lane_rows.note_accepted(tx, [work.lane for work in changed])
        sessions.note_spoken(tx, [work.session for work in changed if work.has_spoken])
        for work in changed:
            if work.is_reset:
                sessions.set_resets(tx, work.session.key, work.session.resets)
            lane_rows.touch(tx, work.lane.session_key)

    def _flush(self, tx: Tx, work: LaneWork) -> None:
        """Write the rows of a lane that statements about it must see."""
        stimuli.add(tx, work.added)
        work.added.clear()
        self._suppress(tx, [work])

    def _suppress(self, tx: Tx, works: Sequence[LaneWork]) -> None:
        """End what was refused as it came; the rows are written."""
        refused: dict[str, dict[str, int | None]] = {}  # by reason: when to look again, by id
        for work in works:
            for stimulus_id, decision in work.suppressed:
                times = refused.setdefault(decision.reason or "suppressed", {})
                times[stimulus_id] = decision.look_at
            work.suppressed.clear()
        for reason, look_at in refused.items():
            self._settlement.settle(tx, look_at.keys(), State.SUPPRESSED, reason, look_at=look_at)


def _has_room(draft: Draft, room: InboxRoom) -> bool:
    """Tell whether a draft may wait in the inbox, as far as its source is limited."""
    return draft.caps is None or room.is_left(_counted_as(draft), draft.caps)


def _stormy_place(draft: Draft) -> str:
    """Return where the turns of a source are counted.

    Those of the inbox count together: their source may name as many sessions as it likes.
    """
    if draft.kind.rule.held is not Held.ALWAYS:
        return draft.session_key
    return keys.activity(keys.agent_of(draft.session_key))


def _counted_as(draft: Draft) -> str:
    """Return the name under which a source is counted, which no source of another kind has."""
    return inbox_counts.name_of(draft.kind.value, draft.source)
