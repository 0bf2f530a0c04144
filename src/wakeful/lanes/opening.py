"""Claim a lane and open its next turn, or reopen the one it left: one commit, question included."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wakeful.broker import lanes, stimuli
from wakeful.broker.lanes import Lane
from wakeful.broker.stimuli import NEVER
from wakeful.gate import halts
from wakeful.intake import stopping, waking
from wakeful.intake.decide import WAITS, Action, Decision, decide
from wakeful.intake.facts import arrival_of, lane_facts, wake_of
from wakeful.lanes import poison
from wakeful.lanes.choose import Choice, choose
from wakeful.lanes.contexts import Contexts
from wakeful.prompts import notes
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Tx
from wakeful.tools.tool import Effect
from wakeful.transcript import entries, resets, sessions
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import Mind
from wakeful.turn.calls import in_doubt
from wakeful.turn.context import Context
from wakeful.turn.journal import Attempt, Journal, Next
from wakeful.turn.minds import Minds
from wakeful.turn.page import Page
from wakeful.turn.resume import load_step
from wakeful.turn.sheet import Pen, Sheet
from wakeful.turn.sizing import is_compaction
from wakeful.turns import asks, tool_calls, turns
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import ENDS, End, Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, State, Stimulus, Trust

WAITING_LIMIT = 200  # stimuli looked at by one claim
MAX_PREEMPTIONS = 3  # then a stimulus runs uninterrupted, except by stop

NO_FAILURES: Mapping[str, str] = {}

_RERUNS = frozenset({Effect.READ.value, Effect.IDEMPOTENT.value})


class Opened(Record):
    """A claimed lane: the attempt's journal, and what it does first."""

    journal: Journal
    next: Next


class Opening:
    """Opens turns for one node."""

    def __init__(self, pen: Pen, minds: Minds, owner: str) -> None:
        self._pen = pen
        self._minds = minds
        self._owner = owner
        self.contexts = Contexts()

    def open_next(
        self, tx: Tx, session_key: str, ledger_failures: Mapping[str, str] = NO_FAILURES
    ) -> Opened | None:
        """Claim the lane if it is free and due; None if there is nothing to run.

        A turn that goes on may begin with a ledger tool: what that raised, the caller hands in.
        """
        lane = lanes.get(tx, session_key)
        if lane is not None and lane.owner == self._owner:
            lane = self._take_back(tx, lane)
        if lane is None or lane.owner is not None:
            return None
        if self._minds.get(lane.agent_id) is None:
            return self._set_aside(tx, lane, "no-agent")
        if halts.is_halted(tx, lane.agent_id):
            return self._set_aside(tx, lane, "halted")
        session = sessions.get(tx, session_key)
        if session is None and lane.ready_at is None:
            return None  # it was deleted since somebody said that its lane is ready
        assert session is not None
        if lane.turn_id is not None:
            mind = self._mind(session)
            if poison.must_wait(tx, lane, mind.config.limits.attempts):
                return None
            return self._reopen(tx, lane, session, mind, ledger_failures)
        if lane.stopped_seq and stopping.cancel_some(tx, self._pen.settlement, session_key):
            return None  # the lane is looked at again, until nothing of it is left
        choice = self._choose(tx, lane, session)
        if choice is None:
            return None
        session, choice = self._begin_anew(tx, session, choice)
        return self._open(tx, lane, session, self._mind(session), choice)

    def _mind(self, session: Session) -> Mind:
        """Return the mind that this session wants now; a reset may have forgotten some choices."""
        mind = self._minds.get(session.agent_id, session.overrides)
        assert mind is not None
        return mind

    def undo(self, tx: Tx, session_key: str) -> None:
        """Give back a lane whose opening was committed but not heard of."""
        lane = lanes.get(tx, session_key)
        if lane is None or lane.owner != self._owner or lane.turn_id is None:
            return
        turns.leave(tx, lane.turn_id, failed_ask=False, used_ms=0)
        lanes.release(tx, session_key, resume_at=tx.now, keeps_turn=True)

    def _take_back(self, tx: Tx, lane: Lane) -> Lane:
        """Free a lane whose task has ended without giving it back: no lane has two tasks here.

        The attempt is not given back: nobody knows what became of it.
        """
        lanes.release(tx, lane.session_key, resume_at=tx.now, keeps_turn=True)
        return replace(lane, owner=None, resume_at=tx.now)

    def give_up(self, tx: Tx, session_key: str) -> None:
        """Fail whatever keeps the lane from being opened."""
        poison.give_up(tx, self._pen, session_key, self._owner)

    def _set_aside(self, tx: Tx, lane: Lane, reason: str) -> Opened | None:
        """Park what waits in a lane that may not run; an open turn stays, unless told to end."""
        if lane.turn_id is not None:
            return self._hold(tx, lane, lane.turn_id)
        key = lane.session_key
        self._pen.settlement.settle(tx, stimuli.self_waking(tx, key), State.SUPPRESSED, reason)
        self._tell(tx, key, stimuli.park_lane(tx, key, reason), State.PARKED, reason)
        lanes.touch(tx, key)
        return None

    def _hold(self, tx: Tx, lane: Lane, turn_id: str) -> Opened | None:
        """Leave an open turn without a task, or end it if it was told to end."""
        turn = turns.get(tx, turn_id)
        session = sessions.get(tx, lane.session_key)
        assert turn is not None
        assert session is not None
        mind = self._minds.get(lane.agent_id)
        if turn.interrupt is Interrupt.NONE:
            lanes.release(tx, lane.session_key, resume_at=None, keeps_turn=True)
            return None
        if mind is not None:
            return self._reopen(tx, lane, session, mind)
        self._pen.ending.end_turn(tx, turn, End(state=ENDS[turn.interrupt]), lane.epoch)
        return None

    def _choose(self, tx: Tx, lane: Lane, session: Session) -> Choice | None:
        """Choose what opens the turn, and decide again, since time has passed."""
        sleep = sleeps.get_all(tx, [lane.session_key]).get(lane.session_key)
        waiting = self._waiting(tx, lane)
        while True:
            choice = choose(
                waiting,
                now=tx.now,
                debounce_until=lane.debounce_until,
                settings_of=lambda s: self._pen.queue_settings_of(session, s),
            )
            if choice is None:
                lanes.touch(tx, lane.session_key)
                return None
            refused = self._refused(tx, lane, session, sleep, choice)
            if not refused:
                return choice
            waiting = [stimulus for stimulus in waiting if stimulus.id not in refused]

    def _waiting(self, tx: Tx, lane: Lane) -> list[Stimulus]:
        """Return what may run now, and what a `now` takes along of what waits for the window."""
        key, is_open = lane.session_key, (lane.debounce_until or 0) > tx.now
        waiting = self._unexpired(
            tx, stimuli.waiting(tx, key, WAITING_LIMIT, debounced=False if is_open else None)
        )
        if is_open and waiting and waiting[0].priority is Priority.NOW:
            more = self._unexpired(tx, stimuli.waiting(tx, key, WAITING_LIMIT, debounced=True))
            waiting = sorted(waiting + more, key=lambda s: (s.priority, s.place, s.seq))
        return waiting

    def _unexpired(self, tx: Tx, found: list[Stimulus]) -> list[Stimulus]:
        """Return what is not too late, and end the rest."""
        late = {s.id for s in found if s.expires_at is not None and s.expires_at < tx.now}
        self._pen.settlement.settle(tx, late, State.EXPIRED, "expired")
        return [stimulus for stimulus in found if stimulus.id not in late]

    def _begin_anew(self, tx: Tx, session: Session, choice: Choice) -> tuple[Session, Choice]:
        """Begin the new transcript that a reset asked for, if its turn has come."""
        if not session.resets:
            return session, choice
        found = resets.split(session.resets, [stimulus.seq for stimulus in choice.stimuli])
        fresh = session
        if found.due is not None:
            fresh = resets.begin(tx, session, self._pen.ids.new("tr"), found.due)
            self._pen.bus.publish(tx, resets.told(session, fresh, found.due.by))
        return fresh, choice.only(found.together)

    def _refused(
        self, tx: Tx, lane: Lane, session: Session, sleep: Sleep | None, choice: Choice
    ) -> set[str]:
        """Set aside what may not run now, and whatever is like it; return the ids of those."""
        facts = lane_facts(lane, None, sleep, is_halted=False, now=tx.now)
        for stimulus in choice.stimuli:
            decision = decide(
                arrival_of(stimulus, tx.now),
                facts,
                self._pen.queue_settings_of(session, stimulus),
                self._pen.may_wake(tx, wake_of(stimulus)),
            )
            if decision.action not in WAITS:
                return self._put_off(tx, stimulus, decision)
            if decision.wakes and sleep is not None:
                waking.interrupt(tx, self._pen.bus, sleep, lane.session_key)
                return self._refused(tx, lane, session, None, choice)
        return set()

    def _put_off(self, tx: Tx, stimulus: Stimulus, decision: Decision) -> set[str]:
        reason = decision.reason or decision.action.value
        if decision.action is Action.PARK:
            look_at = NEVER if decision.look_at is None else decision.look_at
            parked = stimuli.park_alike(tx, stimulus, reason, look_at)
            self._tell(tx, stimulus.session_key, parked, State.PARKED, reason)
            return {*parked, stimulus.id}
        if decision.action is Action.HOLD:
            stimuli.hold(tx, stimulus.id, decision.reason)
            self._tell(tx, stimulus.session_key, [stimulus.id], State.HELD, reason)
        else:
            self._pen.settlement.settle(tx, [stimulus.id], State.SUPPRESSED, reason)
        return {stimulus.id}

    def _tell(
        self, tx: Tx, session_key: str, ids: Sequence[str], state: State, reason: str
    ) -> None:
        for stimulus_id in ids:
            event = Event(
                kind=f"stimulus.{state.value}",
                session_key=session_key,
                stimulus_id=stimulus_id,
                data={"reason": reason},
            )
            self._pen.bus.publish(tx, event)

    def _open(self, tx: Tx, lane: Lane, session: Session, mind: Mind, choice: Choice) -> Opened:
        """Open a turn: epoch, turn row, entries, stimuli claimed, model about to be asked."""
        head = choice.stimuli[0]
        turn = self._new_turn(tx, lane, session, mind, choice.stimuli)
        journal = self._claim(tx, lane, session, mind, turn)
        turns.add(tx, turn)
        ids = [stimulus.id for stimulus in choice.stimuli]
        stimuli.claim(tx, ids, turn.id)
        page = Page(self._pen, tx, journal, turn, session)
        if not is_compaction(turn) and not page.is_moot():
            self._show(tx, page.sheet, lane, choice)
        page.sheet.publish(
            "turn.started",
            epoch=journal.attempt.epoch,
            origin=head.origin.value,
            source=head.source,
            stimuli=ids,
        )
        for stimulus_id in ids:
            page.sheet.publish("stimulus.claimed", stimulus_id, how="opened")
        next = page.close(_first_step(page)).apply(journal)
        return Opened(journal=journal, next=next)

    def _claim(
        self, tx: Tx, lane: Lane, session: Session, mind: Mind, turn: Turn, *, is_open: bool = False
    ) -> Journal:
        """Take the lane for a turn and begin the journal of this attempt."""
        epoch = lanes.claim(tx, lane, owner=self._owner, turn_id=turn.id)
        return Journal(
            attempt=Attempt(
                session_key=lane.session_key, turn_id=turn.id, owner=self._owner, epoch=epoch
            ),
            mind=mind,
            turn=turn,
            context=self._context(tx, session, turn, is_open=is_open),
        )

    def _context(self, tx: Tx, session: Session, turn: Turn, *, is_open: bool) -> Context:
        if turn.view is View.LIGHT:
            return self.contexts.light(tx, session, turn.id)
        return self.contexts.take(tx, session, turn.id if is_open else None)

    def _new_turn(
        self, tx: Tx, lane: Lane, session: Session, mind: Mind, group: Sequence[Stimulus]
    ) -> Turn:
        head = group[0]
        return Turn(
            id=self._pen.ids.turn(),
            session_key=lane.session_key,
            agent_id=lane.agent_id,
            transcript_id=session.transcript_id,
            kind=head.kind,
            priority=head.priority,
            trust=head.trust,
            source=head.source,
            route=head.route,
            root_id=head.root_id,
            depth=max(stimulus.depth for stimulus in group),
            opened_by=head.id,
            config_hash=mind.config_hash,
            state=TurnState.OPEN,
            phase=Phase.STREAMING,
            interrupt=Interrupt.NONE,
            is_preemptible=all(s.preemptions < MAX_PREEMPTIONS for s in group),
            attempts=1,
            retries=0,
            step=0,
            tool_calls=0,
            used_ms=0,
            input_tokens=0,
            output_tokens=0,
            cost=0.0,
            reply=None,
            error_kind=None,
            error=None,
            opened_at=tx.now,
            claimed_at=tx.now,
            ended_at=None,
            view=head.kind.rule.view,
            granted=self._granted(group),
            reports_to=self._pen.reports_to(tx, head),
        )

    def _granted(self, group: Sequence[Stimulus]) -> tuple[str, ...]:
        """Return the tools that each of those who open a turn is granted."""
        first, *others = (frozenset(self._pen.grants_of(stimulus)) for stimulus in group)
        return tuple(sorted(first.intersection(*others)))

    def _show(self, tx: Tx, sheet: Sheet, lane: Lane, choice: Choice) -> None:
        """Add the entries that show the model what it is asked, notes first."""
        if sheet.session.stopped_note:
            sheet.note("stopped", notes.STOPPED)
            sessions.note_stopped(tx, sheet.session.key, False)
        if any(stimulus.is_debounced for stimulus in choice.stimuli):
            lanes.forget_window(tx, lane.session_key)
        if lane.overflow is not None:
            lanes.forget_overflow(tx, lane.session_key)
            sheet.note("overflow", notes.overflow(lane.overflow.count, lane.overflow.lines))
        reopened = [s.id for s in choice.stimuli if s.preemptions]
        shown = entries.shown(tx, sheet.session, reopened) if reopened else {}
        new = [stimulus for stimulus in choice.stimuli if not shown.get(stimulus.id)]
        for number, stimulus in enumerate(new, 1):
            text = notes.collected(number, stimulus.text) if choice.form == "collected" else None
            sheet.add_stimulus(stimulus, text, is_again=stimulus.id in shown)
        if any(shown.values()):
            again = [_named(one) for one in choice.stimuli if shown.get(one.id)]
            sheet.note("still_to_do", notes.still_to_do(again))

    def _reopen(
        self,
        tx: Tx,
        lane: Lane,
        session: Session,
        mind: Mind,
        ledger_failures: Mapping[str, str] = NO_FAILURES,
    ) -> Opened:
        """Go on with the open turn of a lane, from its last committed entry."""
        assert lane.turn_id is not None
        turns.reclaim(tx, lane.turn_id)
        turn = turns.get(tx, lane.turn_id)
        assert turn is not None
        journal = self._claim(tx, lane, session, mind, turn, is_open=True)
        is_answered = load_step(tx, session, journal)
        page = Page(self._pen, tx, journal, turn, session)
        page.calls.ledger_failures = ledger_failures
        page.sheet.publish("turn.resumed", epoch=journal.attempt.epoch, attempt=turn.attempts)
        next = page.close(self._go_on(tx, page, journal, is_answered=is_answered)).apply(journal)
        return Opened(journal=journal, next=next)

    def _go_on(self, tx: Tx, page: Page, journal: Journal, *, is_answered: bool) -> Next:
        turn, limits = journal.turn, journal.mind.config.limits
        if turn.interrupt is not Interrupt.NONE:
            return page.interrupted()
        if turn.attempts > limits.attempts:
            sentence = (
                f"This was tried {limits.attempts} times and stopped the process each time; "
                "it will not be tried again."
            )
            return page.end(
                End(state=TurnState.FAILED, reply=sentence, error_kind="poisoned", error=sentence)
            )
        purpose, _ = asks.last(tx, turn.id, turn.step)
        if not is_answered and purpose is Purpose.REPLY:
            return page.ask(turn.step)
        if not is_answered:
            return page.compact(turn.step, purpose)
        if purpose is not Purpose.REPLY:
            return page.next_step(page.ask_or_compact)
        begun = tool_calls.of_step(tx, turn.id, turn.step)
        page.write_outcomes(
            [
                in_doubt(call)
                for call in journal.remaining
                if call.id in begun and begun[call.id].effect not in _RERUNS
            ]
        )
        return page.go_on()


def _first_step(page: Page) -> Next:
    """Ask what the turn was opened for, if there is still something to ask."""
    if page.is_moot():
        return page.end(End(state=TurnState.DONE))
    if is_compaction(page.turn):
        return page.compact(1, Purpose.SUMMARY)
    return page.ask_or_compact(1)


def _named(stimulus: Stimulus) -> str:
    """Return what a message is recognised by; text from outside stays inside its fence."""
    if stimulus.trust is Trust.EXTERNAL:
        return f"(the message of {stimulus.source})"
    return stimulus.text
