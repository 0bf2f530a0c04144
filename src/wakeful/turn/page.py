"""A page of the journal: one commit of a turn, from what happened to what happens next.

Facts are always written; nothing new starts once the turn was interrupted, its agent halted or a
limit reached.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.broker import lanes, stimuli
from wakeful.gate import halts
from wakeful.intake.decide import Action, LaneState, decide
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.prompts import notes
from wakeful.store.database import Tx
from wakeful.transcript import resets, sessions
from wakeful.transcript.sessions import Session
from wakeful.turn import limits, sizing
from wakeful.turn.calls import StepCalls
from wakeful.turn.context import Context
from wakeful.turn.journal import Act, Ask, CallOutcome, Compact, Ended, Journal, Left, Next
from wakeful.turn.sheet import Pen, Sheet
from wakeful.turn.silence import spoken
from wakeful.turn.sizing import cycle_of, due_after, is_compaction, is_flush
from wakeful.turn.tokens import CHARACTERS_PER_TOKEN, counted
from wakeful.turns import asks, turns
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import ENDS, End, Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.entry import AssistantBody, Entry
from wakeful.vocabulary.errors import Garbled, Transient
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.message import AssistantMessage, StopReason, Text, ToolCall
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Place, State, Stimulus
from wakeful.vocabulary.text import clean, told

STEER_LIMIT = 100  # waiting stimuli looked at by one boundary


class Advanced(Record):
    """What one commit wrote."""

    next: Next
    turn: Turn
    entries: tuple[Entry, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    settled: frozenset[str] = frozenset()
    rests: bool = False
    said: str = ""
    context: Context | None = None  # built anew: what the model sees is no longer what it was

    def apply(self, journal: Journal) -> Next:
        """Bring an attempt's memory in line with what was committed."""
        journal.turn = self.turn
        if self.context is None:
            journal.context.extend(self.entries)
        else:
            journal.context = self.context
        journal.calls, journal.settled = self.calls, self.settled
        journal.rests, journal.said = self.rests, self.said
        journal.finished.clear()
        return self.next


class Page:
    """One commit in the making."""

    def __init__(self, pen: Pen, tx: Tx, journal: Journal, turn: Turn, session: Session) -> None:
        self.tx = tx
        self.mind = journal.mind
        self.sheet = Sheet(pen, tx, journal.attempt, turn, session)
        self.calls = StepCalls(self.sheet, journal.mind, journal.calls, journal.settled)
        self.calls.rests = journal.rests
        self._said = journal.said
        self.context: Context | None = None  # after a compaction
        self._counted, self._counted_lines = journal.context.tokens, 0
        self._used_s = journal.used_s

    @property
    def turn(self) -> Turn:
        return self.sheet.turn

    def close(self, next: Next) -> Advanced:
        """Write what was gathered and return all of it."""
        self.sheet.flush()
        return Advanced(
            next=next,
            turn=self.turn,
            entries=tuple(self.sheet.written),
            calls=self.calls.all,
            settled=frozenset(self.calls.settled),
            rests=self.calls.rests,
            said=self._said,
            context=self.context,
        )

    def write_reply(self, reply: AssistantMessage) -> None:
        """Write a model's reply; it is never asked for again."""
        self.note_answer(reply)
        is_silent = not reply.tool_calls and (spoken(reply.text).is_silent or is_flush(self.turn))
        is_partial = self.turn.view is View.LIGHT
        self.sheet.add(AssistantBody(message=reply, is_silent=is_silent, is_partial=is_partial))
        self._count(counted(reply))
        # The size of what a light turn sees says nothing about its session's.
        tokens = None if is_partial else self.tokens()
        sessions.add_usage(self.tx, self.turn.session_key, reply.usage, tokens)
        self._turn_to(reply.tool_calls, reply.text)

    def note_answer(self, answer: AssistantMessage) -> None:
        """Settle the question that was asked, and count what its answer used."""
        turn, usage = self.turn, answer.usage
        asks.answered(self.tx, turn.id, turn.step, usage)
        turns.note_usage(self.tx, turn.id, usage)
        self.sheet.turn = replace(
            turn,
            input_tokens=turn.input_tokens + usage.input,
            output_tokens=turn.output_tokens + usage.output,
            cost=turn.cost + usage.cost,
        )

    def write_outcomes(self, outcomes: Sequence[CallOutcome]) -> None:
        """Write results of calls; what has a result never runs again."""
        self.calls.write(outcomes)

    def write_facts(self, journal: Journal) -> None:
        """Write what an attempt knows that no commit has yet: words said, calls finished."""
        partial = "".join(journal.partial)
        if partial.strip() and not self.calls.all:
            self._say(partial, "aborted")
        self.write_outcomes(journal.finished)

    def go_on(self) -> Next:
        """Decide what comes next."""
        if self.turn.interrupt is not Interrupt.NONE:
            return self.interrupted()
        while self.calls.remaining():
            if halts.is_halted(self.tx, self.turn.agent_id):
                return self.leave("halted", None)
            if self._steers():
                self._skip(notes.SKIPPED)
                break
            group = self.calls.next_group()
            sentence = limits.before_calls(self.turn, self.mind.config.limits, len(group))
            if sentence is not None:
                return self._end_at_limit(sentence)
            if self.calls.settle_at_once(group[0]):
                continue
            self.calls.intend(group)
            return Act(calls=group)
        return self._rest_or_ask()

    def next_step(self, begin: Callable[[int], Ask | Compact]) -> Next:
        """Begin another step, unless the turn may not go on."""
        if self.turn.interrupt is not Interrupt.NONE:
            return self.interrupted()
        if halts.is_halted(self.tx, self.turn.agent_id):
            return self.leave("halted", None)
        sentence = limits.before_ask(self.turn, self.mind.config.limits)
        if sentence is not None:
            return self._end_at_limit(sentence)
        return begin(self.turn.step + 1)

    def ask(self, step: int) -> Ask:
        """Write down that the model is about to be asked."""
        self._write_ask(step, Purpose.REPLY, Phase.STREAMING)
        return Ask(step=step)

    def compact(self, step: int, purpose: Purpose) -> Compact:
        """Write down that the model is about to be asked for a summary."""
        self._write_ask(step, purpose, Phase.COMPACTING)
        return Compact(step=step, purpose=purpose)

    def ask_or_compact(self, step: int) -> Ask | Compact:
        """Ask the model, or make room first if its answer might not fit.

        Memories are written of what will be folded, so never after it; there is the reserve.
        """
        if not is_flush(self.turn) and self.is_crowded():
            return self.compact(step, Purpose.SUMMARY)
        return self.ask(step)

    def is_crowded(self) -> bool:
        """Tell whether the conversation must be folded before the model is asked again."""
        if self.turn.view is View.LIGHT:
            return False  # nothing that could be folded is in its way
        return sizing.is_crowded(self.mind, self.sheet.session, self.tokens())

    def is_moot(self) -> bool:
        """Tell whether the turn has nothing left to do: the runtime gave it to itself too soon."""
        return sizing.is_moot(self.turn, self.mind, self.sheet.session, self.tokens())

    def tokens(self) -> int:
        """Return how large the conversation is with the lines of this commit."""
        self.sheet.flush()
        new = self.sheet.written[self._counted_lines :]
        return self._counted + sum(len(line.body) for line in new) // CHARACTERS_PER_TOKEN

    def show_anew(self, context: Context) -> None:
        """Go on with another view of the conversation."""
        self.context = context
        self._count(context.tokens)

    def interrupted(self) -> Ended:
        """End a turn that was told to end."""
        return self.end(End(state=ENDS[self.turn.interrupt]))

    def end(self, how: End) -> Ended:
        """End the turn; its unfinished calls get results, its sentence an entry."""
        self._skip(notes.SKIPPED_STOP)
        if how.reply is not None and how.error_kind is not None and not is_compaction(self.turn):
            self._say(how.reply, "limit" if how.error_kind == "limit" else "error")
        self.sheet.flush()
        if how.state is TurnState.DONE:
            self._file_what_is_due()
        self.sheet.pen.ending.end_turn(self.tx, self.turn, how, self.sheet.attempt.epoch)
        return Ended(state=how.state)

    def leave(self, reason: str, resume_at: int | None, failure: Transient | None = None) -> Left:
        """Leave the turn open without a task; the attempt is given back."""
        turn, is_garbled = self.turn, isinstance(failure, Garbled)
        ask_error = None if failure is None else told(failure)
        if ask_error is not None:
            settle = asks.garbled if is_garbled else asks.failed
            settle(self.tx, turn.id, turn.step, ask_error)
        failed_ask = failure is not None and not is_garbled
        used_ms = round(self._used_s() * 1000)
        turns.leave(self.tx, turn.id, failed_ask=failed_ask, used_ms=used_ms)
        lanes.release(self.tx, turn.session_key, resume_at=resume_at, keeps_turn=True)
        self.sheet.publish(
            "turn.left",
            reason=reason,
            resume_at=resume_at,
            error=ask_error,
            epoch=self.sheet.attempt.epoch,
        )
        return Left(reason=reason)

    def _rest_or_ask(self) -> Next:
        """All calls have results: end if there were none or one said so, else ask again."""
        if not self.calls.all or self.calls.rests:
            return self.end(End(state=TurnState.DONE, reply=self._said or None))
        return self.next_step(self._steer_and_ask)

    def _steer_and_ask(self, step: int) -> Ask | Compact:
        self._take_steers()
        return self.ask_or_compact(step)

    def _end_at_limit(self, sentence: str) -> Ended:
        return self.end(
            End(state=TurnState.FAILED, reply=sentence, error_kind="limit", error=sentence)
        )

    def _take_steers(self) -> None:
        """Claim what joins now, together with the entries that show it to the model."""
        joining = self._steers()
        if not joining:
            return
        stimuli.claim(self.tx, [stimulus.id for stimulus in joining], self.turn.id)
        for stimulus in joining:
            granted = self.sheet.pen.grants_of(stimulus)
            self.sheet.turn = turns.narrow(self.tx, self.turn, granted)
            self.sheet.add_stimulus(stimulus)
            self.sheet.publish("stimulus.claimed", stimulus.id, how="steered")

    def _steers(self) -> list[Stimulus]:
        """Return waiting stimuli that join this turn at its next boundary."""
        session = self.sheet.session
        waiting = stimuli.waiting(self.tx, session.key, STEER_LIMIT)
        if not waiting:
            return []
        lane = lanes.get(self.tx, session.key)
        assert lane is not None
        facts = lane_facts(lane, self.turn, None, is_halted=False, now=self.tx.now)
        at_boundary = replace(facts, state=LaneState.TOOLS)
        settings_of, now = self.sheet.pen.queue_settings_of, self.tx.now
        return [
            stimulus
            for stimulus in waiting
            if _may_steer(stimulus, now)
            and resets.may_join(session.resets, stimulus.seq)
            and decide(
                arrival_of(stimulus, now), at_boundary, settings_of(session, stimulus)
            ).action
            is Action.STEER
        ]

    def _write_ask(self, step: int, purpose: Purpose, phase: Phase) -> None:
        self.sheet.flush()
        asks.add(
            self.tx,
            self.turn.id,
            step,
            epoch=self.sheet.attempt.epoch,
            leaf_hash=self.sheet.session.leaf_hash,
            purpose=purpose,
        )
        self.sheet.enter(phase, step=step, tool_calls=self.turn.tool_calls)
        self._turn_to((), "")

    def _count(self, tokens: int | None) -> None:
        """Take over what the model counted, if it did, for everything up to here."""
        if tokens is not None:
            self._counted, self._counted_lines = tokens, self.sheet.count

    def _file_what_is_due(self) -> None:
        """File what the size of the conversation asks for, to be done when nobody waits."""
        if self.turn.view is View.LIGHT:
            return
        session = self.sheet.session
        drafts = due_after(self.turn, self.mind, session, self.tokens())
        if any(is_flush(draft) for draft in drafts):
            sessions.note_flush(self.tx, session.key, cycle_of(session))
        if drafts:
            self.sheet.pen.file(self.tx, drafts)

    def _skip(self, reason: str) -> None:
        self.calls.skip(reason)

    def _say(self, text: str, stop_reason: StopReason) -> None:
        """Write words that are no whole reply of a model: cut off, or the runtime's own."""
        said = AssistantMessage(content=(Text(text=clean(text)),), stop_reason=stop_reason)
        self.sheet.add(AssistantBody(message=said, is_silent=is_flush(self.turn)))

    def _turn_to(self, calls: tuple[ToolCall, ...], said: str) -> None:
        """Begin the calls of another reply."""
        failures = self.calls.ledger_failures
        self.calls = StepCalls(self.sheet, self.mind, calls, ())
        self.calls.ledger_failures = failures
        self._said = said


def _may_steer(stimulus: Stimulus, now: int) -> bool:
    """Tell whether a waiting stimulus is allowed to run, not too late, and new to the model.

    Interrupted work has been shown already: it opens a turn of its own.
    """
    return (
        stimulus.state is State.PENDING
        and stimulus.place is not Place.INTERRUPTED
        and (stimulus.expires_at is None or stimulus.expires_at >= now)
    )
