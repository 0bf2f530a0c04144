"""Claim a lane and open its next turn, or reopen the one it left: one commit, question included."""

from collections.abc import Sequence

from wakeful.broker import lanes, stimuli
from wakeful.broker.lanes import NEVER, Lane
from wakeful.gate import halts
from wakeful.intake.decide import WAITS, Action, LaneFacts, LaneState, decide
from wakeful.intake.facts import arrival_of
from wakeful.lanes.choose import Choice, choose
from wakeful.lanes.contexts import Contexts
from wakeful.prompts import notes
from wakeful.store.database import Tx
from wakeful.tools.tool import Effect
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import Line
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import Mind
from wakeful.turn.journal import Attempt, Journal, Next
from wakeful.turn.page import Page, Pen, in_doubt, opening_line
from wakeful.turn.resume import load_step
from wakeful.turns import tool_calls, turns
from wakeful.turns.turns import End, Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.entry import Kind, NoteBody
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import State, Stimulus

WAITING_LIMIT = 200  # stimuli looked at by one claim
MAX_PREEMPTIONS = 3  # then a stimulus runs uninterrupted, except by stop

_RERUNS = frozenset({Effect.READ.value, Effect.IDEMPOTENT.value})


class Opened(Record):
    """A claimed lane: the attempt's journal, and what it does first."""

    journal: Journal
    next: Next


class Opening:
    """Opens turns for one node."""

    def __init__(self, pen: Pen, minds: dict[str, Mind], owner: str) -> None:
        self._pen = pen
        self._minds = minds
        self._owner = owner
        self.contexts = Contexts()

    def open_next(self, tx: Tx, session_key: str) -> Opened | None:
        """Claim the lane if it is free and due; None if there is nothing to run."""
        lane = lanes.get(tx, session_key)
        if lane is None or lane.owner is not None:
            return None
        mind = self._minds.get(lane.agent_id)
        if mind is None:
            return self._set_aside(tx, lane, "no-agent")
        if halts.is_halted(tx, lane.agent_id):
            return self._set_aside(tx, lane, "halted")
        session = sessions.get(tx, session_key)
        assert session is not None
        if lane.turn_id is not None:
            return self._reopen(tx, lane, session, mind)
        choice = self._choose(tx, lane, session)
        return None if choice is None else self._open(tx, lane, session, mind, choice)

    def _set_aside(self, tx: Tx, lane: Lane, reason: str) -> Opened | None:
        """Park what waits in a lane that may not run; an open turn stays, unless told to end."""
        if lane.turn_id is not None:
            turn = turns.get(tx, lane.turn_id)
            assert turn is not None
            mind = self._minds.get(lane.agent_id)
            if turn.interrupt is not Interrupt.NONE and mind is not None:
                session = sessions.get(tx, lane.session_key)
                assert session is not None
                return self._reopen(tx, lane, session, mind)
            lanes.release(tx, lane.session_key, resume_at=None, keeps_turn=True)
            return None
        waiting = stimuli.waiting(tx, lane.session_key, WAITING_LIMIT)
        for stimulus in waiting:
            if stimulus.state is State.PENDING:
                self._apply(tx, stimulus, Action.PARK, reason, None)
        lanes.touch(tx, lane.session_key)
        return None

    def _choose(self, tx: Tx, lane: Lane, session: Session) -> Choice | None:
        """Decide again, since time has passed, and choose what opens the turn."""
        waiting: list[Stimulus] = []
        for stimulus in stimuli.waiting(tx, lane.session_key, WAITING_LIMIT):
            if stimulus.expires_at is not None and stimulus.expires_at < tx.now:
                self._apply(tx, stimulus, None, "expired", None)
            elif stimulus.state is State.PARKED and stimulus.not_before > tx.now:
                continue
            else:
                waiting.append(stimulus)
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
            refused = self._refused(tx, session, choice)
            if not refused:
                return choice
            waiting = [stimulus for stimulus in waiting if stimulus.id not in refused]

    def _refused(self, tx: Tx, session: Session, choice: Choice) -> set[str]:
        """Park or suppress what may not run now; return the ids of those."""
        refused: set[str] = set()
        facts = LaneFacts(state=LaneState.IDLE)
        for stimulus in choice.stimuli:
            settings = self._pen.queue_settings_of(session, stimulus)
            decision = decide(arrival_of(stimulus), facts, settings)
            if decision.action not in WAITS:
                refused.add(stimulus.id)
                self._apply(tx, stimulus, decision.action, decision.reason, decision.look_at)
        return refused

    def _apply(
        self,
        tx: Tx,
        stimulus: Stimulus,
        action: Action | None,
        reason: str | None,
        look_at: int | None,
    ) -> None:
        if action is Action.PARK:
            state = State.PARKED
            until = NEVER if look_at is None else look_at
            stimuli.park(tx, [stimulus.id], reason or "parked", until)
        else:
            state = State.EXPIRED if action is None else _SETTLED_STATES[action]
            stimuli.move(tx, [stimulus.id], state, reason)
        self._publish(
            tx, f"stimulus.{state.value}", stimulus.session_key, None, stimulus.id, reason=reason
        )

    def _open(self, tx: Tx, lane: Lane, session: Session, mind: Mind, choice: Choice) -> Opened:
        """Open a turn: epoch, turn row, entries, stimuli claimed, model about to be asked."""
        head = choice.stimuli[0]
        turn = self._new_turn(tx, lane, session, mind, choice.stimuli)
        epoch = lanes.claim(tx, lane, owner=self._owner, turn_id=turn.id)
        turns.add(tx, turn)
        ids = [stimulus.id for stimulus in choice.stimuli]
        parked = [s.id for s in choice.stimuli if s.state is State.PARKED]
        stimuli.move(tx, parked, State.PENDING)
        stimuli.claim(tx, ids, turn.id)
        lines = self._opening_lines(tx, lane, session, choice, turn.id, epoch)
        if session.stopped_note:
            sessions.note_stopped(tx, session.key, False)
        context = self.contexts.take(tx, session, None)
        session, written = entries.append(tx, session, lines)
        context.extend(written)
        self._publish(
            tx,
            "turn.started",
            lane.session_key,
            turn.id,
            None,
            epoch=epoch,
            origin=head.origin.value,
            source=head.source,
            stimuli=ids,
        )
        for stimulus_id in ids:
            self._publish(
                tx, "stimulus.claimed", lane.session_key, turn.id, stimulus_id, how="opened"
            )
        attempt = Attempt(
            session_key=lane.session_key, turn_id=turn.id, owner=self._owner, epoch=epoch
        )
        journal = Journal(attempt=attempt, mind=mind, turn=turn, context=context)
        page = Page(self._pen, tx, journal, turn, session)
        next = page.ask(1)
        advanced = page.close(next)
        journal.turn = advanced.turn
        return Opened(journal=journal, next=next)

    def _new_turn(
        self, tx: Tx, lane: Lane, session: Session, mind: Mind, group: Sequence[Stimulus]
    ) -> Turn:
        head = group[0]
        return Turn(
            id=self._pen.ids.turn(),
            session_key=lane.session_key,
            agent_id=lane.agent_id,
            transcript_id=session.transcript_id,
            origin=head.origin,
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
        )

    def _opening_lines(
        self,
        tx: Tx,
        lane: Lane,
        session: Session,
        choice: Choice,
        turn_id: str,
        epoch: int,
    ) -> list[Line]:
        """Return the entries that show the model what it is asked, notes first."""
        lines: list[Line] = []

        def note(kind: str, text: str) -> None:
            lines.append(
                Line(
                    id=self._pen.ids.entry(),
                    kind=Kind.CUSTOM_MESSAGE,
                    body=NoteBody(topic=kind, text=text),
                    turn_id=turn_id,
                    epoch=epoch,
                )
            )

        if session.stopped_note:
            note("stopped", notes.STOPPED)
        if lane.overflow is not None:
            note("overflow", notes.overflow(lane.overflow.count, lane.overflow.lines))
        reopened = [s.id for s in choice.stimuli if s.preemptions]
        shown = entries.has_stimulus(tx, reopened) if reopened else set[str]()
        number = 0
        for stimulus in choice.stimuli:
            if stimulus.id in shown:
                continue
            number += 1
            is_collected = choice.form == "collected"
            text = notes.collected(number, stimulus.text) if is_collected else stimulus.text
            lines.append(opening_line(self._pen.ids, stimulus, turn_id, epoch, text))
        if shown:
            note("still_to_do", notes.STILL_TO_DO)
        return lines

    def _reopen(self, tx: Tx, lane: Lane, session: Session, mind: Mind) -> Opened:
        """Go on with the open turn of a lane, from its last committed entry."""
        assert lane.turn_id is not None
        epoch = lanes.claim(tx, lane, owner=self._owner, turn_id=lane.turn_id)
        turns.reclaim(tx, lane.turn_id)
        turn = turns.get(tx, lane.turn_id)
        assert turn is not None
        context = self.contexts.take(tx, session, turn.id)
        journal = Journal(
            attempt=Attempt(
                session_key=lane.session_key, turn_id=turn.id, owner=self._owner, epoch=epoch
            ),
            mind=mind,
            turn=turn,
            context=context,
        )
        is_answered = load_step(tx, session, journal)
        self._publish(
            tx,
            "turn.resumed",
            lane.session_key,
            turn.id,
            None,
            epoch=epoch,
            attempt=turn.attempts,
        )
        page = Page(self._pen, tx, journal, turn, session)
        next = self._go_on(tx, page, journal, is_answered=is_answered)
        advanced = page.close(next)
        advanced.apply(journal)
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
        if not is_answered:
            return page.ask(turn.step)
        begun = tool_calls.of_step(tx, turn.id, turn.step)
        page.write_outcomes(
            [
                in_doubt(call)
                for call in journal.remaining
                if call.id in begun and begun[call.id].effect not in _RERUNS
            ]
        )
        return page.go_on()

    def _publish(
        self,
        tx: Tx,
        kind: str,
        session_key: str,
        turn_id: str | None,
        stimulus_id: str | None,
        **data: object,
    ) -> None:
        self._pen.bus.publish(
            tx,
            Event(
                kind=kind,
                session_key=session_key,
                turn_id=turn_id,
                stimulus_id=stimulus_id,
                data={name: value for name, value in data.items() if value is not None},
            ),
        )


_SETTLED_STATES: dict[Action, State] = {
    Action.HOLD: State.HELD,
    Action.SUPPRESS: State.SUPPRESSED,
}
