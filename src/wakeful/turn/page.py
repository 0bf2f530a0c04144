"""A page of the journal: one commit of a turn in the making.

Facts are always written; nothing new starts once the turn was interrupted, its agent halted or a
limit reached.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.broker import lanes, stimuli
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.intake.decide import Action, LaneState, decide
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.prompts import notes
from wakeful.store.database import Tx
from wakeful.tools.running import cut, run_in_ledger
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolResult
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import Line
from wakeful.transcript.sessions import Session
from wakeful.turn import limits
from wakeful.turn.ending import Ending
from wakeful.turn.journal import (
    Act,
    Ask,
    CallOutcome,
    Ended,
    Journal,
    Left,
    Next,
)
from wakeful.turn.silence import spoken
from wakeful.turns import asks, tool_calls, turns
from wakeful.turns.tool_calls import Call, CallState
from wakeful.turns.turns import ENDS, End, Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.entry import AssistantBody, Body, Entry, Kind, ToolBody, UserBody
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import (
    AssistantMessage,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    encode_message,
)
from wakeful.vocabulary.queueing import QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Stimulus, Trust

STEER_LIMIT = 100  # waiting stimuli looked at by one boundary

QueueSettingsOf = Callable[[Session, Stimulus], QueueSettings]


class LedgerToolFailed(Exception):
    """A ledger tool raised; its transaction was rolled back and its call needs a result."""

    def __init__(self, call: ToolCall, cause: Exception) -> None:
        super().__init__(str(cause))
        self.call = call
        self.cause = cause


class Advanced(Record):
    """What one commit wrote."""

    next: Next
    turn: Turn
    entries: tuple[Entry, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    settled: frozenset[str] = frozenset()
    rests: bool = False
    said: str = ""

    def apply(self, journal: Journal) -> Next:
        """Bring an attempt's memory in line with what was committed."""
        journal.turn = self.turn
        journal.context.extend(self.entries)
        journal.calls, journal.settled = self.calls, self.settled
        journal.rests, journal.said = self.rests, self.said
        journal.finished.clear()
        return self.next


class Pen(Record):
    """What every page is written with."""

    bus: Bus
    ids: Ids
    ending: Ending
    queue_settings_of: QueueSettingsOf


class Page:
    """One commit in the making; thrown away with its transaction if that must run again."""

    def __init__(self, pen: Pen, tx: Tx, journal: Journal, turn: Turn, session: Session) -> None:
        self._pen = pen
        self._tx = tx
        self._attempt = journal.attempt
        self._mind = journal.mind
        self.turn = turn
        self._session = session
        self.calls = journal.calls
        self._settled = set(journal.settled)
        self._rests = journal.rests
        self._said = journal.said
        self._lines: list[Line] = []
        self._written: list[Entry] = []
        self.ledger_failures: dict[str, str] = {}

    def close(self, next: Next) -> Advanced:
        """Write what was gathered and return all of it."""
        self._flush()
        return Advanced(
            next=next,
            turn=self.turn,
            entries=tuple(self._written),
            calls=self.calls,
            settled=frozenset(self._settled),
            rests=self._rests,
            said=self._said,
        )

    def write_reply(self, reply: AssistantMessage | None) -> None:
        """Write a model's reply; it is never asked for again."""
        if reply is None:
            return
        asks.answered(self._tx, self.turn.id, self.turn.step, reply.usage)
        turns.note_reply(self._tx, self.turn.id, reply.usage)
        sessions.add_usage(self._tx, self._session.key, reply.usage)
        self.turn = replace(
            self.turn,
            retries=0,
            input_tokens=self.turn.input_tokens + reply.usage.input,
            output_tokens=self.turn.output_tokens + reply.usage.output,
            cost=self.turn.cost + reply.usage.cost,
        )
        is_silent = not reply.tool_calls and spoken(reply.text).is_silent
        self._add(Kind.MESSAGE, AssistantBody(message=reply, is_silent=is_silent))
        self.calls, self._settled = reply.tool_calls, set[str]()
        self._said = reply.text

    def write_outcomes(self, outcomes: Sequence[CallOutcome]) -> None:
        """Write results of calls; what has a result never runs again."""
        for outcome in outcomes:
            if outcome.call.id not in self._settled:
                self._write_outcome(outcome)

    def write_facts(self, journal: Journal) -> None:
        """Write what an attempt knows that no commit has yet: words said, calls finished."""
        if journal.partial.strip() and not self.calls:
            self.write_said(journal.partial, "aborted")
        self.write_outcomes(journal.finished)

    def write_said(self, text: str, stop_reason: StopReason) -> None:
        """Write words that are no whole reply of a model: cut off, or the runtime's own."""
        said = AssistantMessage(content=(Text(text=text),), stop_reason=stop_reason)
        self._add(Kind.MESSAGE, AssistantBody(message=said))

    def go_on(self) -> Next:
        """Decide what comes next."""
        if self.turn.interrupt is not Interrupt.NONE:
            return self.interrupted()
        while remaining := self._remaining():
            if halts.is_halted(self._tx, self.turn.agent_id):
                return self.leave("halted", None, None)
            if self._steers():
                self._skip(notes.SKIPPED)
                break
            group = self._next_group(remaining)
            sentence = limits.before_calls(self.turn, self._mind.config.limits, len(group))
            if sentence is not None:
                return self._end_at_limit(sentence)
            if self._settle_at_once(group[0]):
                continue
            return self._intend(group)
        return self._rest_or_ask()

    def interrupted(self) -> Next:
        """End a turn that was told to end."""
        return self.end(End(state=ENDS[self.turn.interrupt]))

    def end(self, how: End) -> Next:
        self._skip(notes.SKIPPED_STOP)
        if how.reply is not None and how.error_kind is not None:
            self.write_said(how.reply, "limit" if how.error_kind == "limit" else "error")
        self._flush()
        asks.failed(self._tx, self.turn.id, self.turn.step, how.error or how.state.value)
        self._pen.ending.end_turn(self._tx, self.turn, how, self._attempt.epoch)
        return Ended(state=how.state)

    def leave(self, reason: str, resume_at: int | None, ask_error: str | None) -> Next:
        if ask_error is not None:
            asks.failed(self._tx, self.turn.id, self.turn.step, ask_error)
        turns.leave(
            self._tx,
            self.turn.id,
            is_clean=True,
            failed_ask=ask_error is not None,
            used_ms=self._tx.now - self.turn.claimed_at,
        )
        lanes.release(self._tx, self.turn.session_key, resume_at=resume_at, keeps_turn=True)
        data: dict[str, object] = {
            "reason": reason,
            "resume_at": resume_at,
            "epoch": self._attempt.epoch,
        }
        self._publish("turn.left", data)
        return Left(reason=reason)

    def _remaining(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call.id not in self._settled)

    def _next_group(self, remaining: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that run together: reads side by side, everything else alone."""
        group = [remaining[0]]
        if self._is_read(remaining[0]):
            for call in remaining[1:]:
                if not self._is_read(call):
                    break
                group.append(call)
        return tuple(group)

    def _is_read(self, call: ToolCall) -> bool:
        tool = self._tool(call)
        return tool is not None and tool.effect is Effect.READ

    def _tool(self, call: ToolCall) -> Tool | None:
        return self._mind.toolbox.get(call.name, self.turn.trust)

    def _settle_at_once(self, call: ToolCall) -> bool:
        """Give a call its result in this very commit, if it is one that can have it."""
        tool = self._tool(call)
        if tool is None:
            text = notes.GONE if self._was_offered(call) else f"there is no tool {call.name!r}"
            result = ToolResult(text=text, is_error=True)
        elif tool.effect is Effect.LEDGER:
            failure = self.ledger_failures.get(call.id)
            result = (
                self._run_in_ledger(tool, call)
                if failure is None
                else ToolResult(text=failure, is_error=True)
            )
        else:
            return False
        self._count_calls(1)
        effect = Effect.LEDGER if tool is not None else Effect.READ
        state = CallState.FAILED if result.is_error else CallState.DONE
        tool_calls.add(self._tx, [self._call(call, effect, state)])
        self._write_outcome(CallOutcome(call=call, result=result, state=state))
        return True

    def _was_offered(self, call: ToolCall) -> bool:
        known = tool_calls.of_step(self._tx, self.turn.id, self.turn.step)
        return call.id in known

    def _run_in_ledger(self, tool: Tool, call: ToolCall) -> ToolResult:
        self._flush()
        context = LedgerContext(
            tx=self._tx,
            ids=self._pen.ids,
            turn=self.turn,
            session=self._session,
            agent=self._mind.config,
            key=self._key(call),
        )
        try:
            return run_in_ledger(tool, call, context)
        except Exception as error:
            raise LedgerToolFailed(call, error) from error

    def _intend(self, group: tuple[ToolCall, ...]) -> Act:
        """Write down that calls are about to run."""
        rows: list[Call] = []
        for call in group:
            tool = self._tool(call)
            assert tool is not None
            rows.append(self._call(call, tool.effect, CallState.INTENDED))
            self._publish("turn.tool", {"call_id": call.id, "name": call.name, "phase": "started"})
        tool_calls.add(self._tx, rows)
        self._count_calls(len(group))
        return Act(calls=group)

    def _count_calls(self, count: int) -> None:
        self._enter(Phase.TOOLS, self.turn.step, self.turn.tool_calls + count)

    def _enter(self, phase: Phase, step: int, calls: int) -> None:
        turns.enter(self._tx, self.turn, phase, step=step, tool_calls=calls)
        self.turn = replace(self.turn, phase=phase, step=step, tool_calls=calls)

    def _rest_or_ask(self) -> Next:
        """All calls have results: end if there were none or one said so, else ask again."""
        if not self.calls or self._rests:
            return self.end(End(state=TurnState.DONE, reply=self._said or None))
        if halts.is_halted(self._tx, self.turn.agent_id):
            return self.leave("halted", None, None)
        sentence = limits.before_ask(self.turn, self._mind.config.limits)
        if sentence is not None:
            return self._end_at_limit(sentence)
        self._take_steers()
        return self.ask(self.turn.step + 1)

    def ask(self, step: int) -> Ask:
        """Write down that the model is about to be asked."""
        self._flush()
        asks.add(
            self._tx,
            self.turn.id,
            step,
            epoch=self._attempt.epoch,
            leaf_hash=self._session.leaf_hash,
        )
        self._enter(Phase.STREAMING, step, self.turn.tool_calls)
        self.calls, self._settled, self._rests, self._said = (), set[str](), False, ""
        return Ask(step=step)

    def _end_at_limit(self, sentence: str) -> Next:
        return self.end(
            End(state=TurnState.FAILED, reply=sentence, error_kind="limit", error=sentence)
        )

    def _steers(self) -> list[Stimulus]:
        """Return waiting stimuli that join this turn at its next boundary."""
        waiting = stimuli.waiting(self._tx, self._session.key, STEER_LIMIT)
        if not waiting:
            return []
        lane = lanes.get(self._tx, self._session.key)
        assert lane is not None
        facts = lane_facts(lane, self.turn, None, is_halted=False, now=self._tx.now)
        facts = replace(facts, state=LaneState.TOOLS)
        return [
            stimulus
            for stimulus in waiting
            if stimulus.not_before <= self._tx.now
            and decide(
                arrival_of(stimulus),
                facts,
                self._pen.queue_settings_of(self._session, stimulus),
            ).action
            is Action.STEER
        ]

    def _take_steers(self) -> None:
        """Claim what joins now, together with the entries that show it to the model."""
        joining = self._steers()
        if not joining:
            return
        stimuli.claim(self._tx, [stimulus.id for stimulus in joining], self.turn.id)
        for stimulus in joining:
            self._lines.append(
                opening_line(self._pen.ids, stimulus, self.turn.id, self._attempt.epoch)
            )
            self._publish("stimulus.claimed", {"how": "steered"}, stimulus.id)

    def _skip(self, reason: str) -> None:
        """Close the calls that will not run: what had begun is in doubt, the rest was skipped."""
        remaining = self._remaining()
        if not remaining:
            return
        begun = tool_calls.of_step(self._tx, self.turn.id, self.turn.step)
        for call in remaining:
            if call.id in begun:
                self._write_outcome(in_doubt(call))
                continue
            tool_calls.add(self._tx, [self._call(call, Effect.READ, CallState.SKIPPED)])
            result = ToolResult(text=reason, is_error=True)
            self._write_outcome(CallOutcome(call=call, result=result, state=CallState.SKIPPED))

    def _write_outcome(self, outcome: CallOutcome) -> None:
        call, result = outcome.call, outcome.result
        shown, whole = cut(result.text, self._key(call))
        tool_calls.settle(
            self._tx, self.turn.id, self.turn.step, call.id, state=outcome.state, output=whole
        )
        message = ToolMessage(call_id=call.id, name=call.name, text=shown, is_error=result.is_error)
        self._add(Kind.MESSAGE, ToolBody(message=message))
        self._settled.add(call.id)
        self._rests = self._rests or result.ends_turn
        self._publish(
            "turn.tool", {"call_id": call.id, "name": call.name, "phase": outcome.state.value}
        )

    def _call(self, call: ToolCall, effect: Effect, state: CallState) -> Call:
        return Call(
            turn_id=self.turn.id,
            step=self.turn.step,
            call_id=call.id,
            position=[known.id for known in self.calls].index(call.id),
            name=call.name,
            effect=effect.value,
            arguments=encode_message(call.arguments).decode(),
            epoch=self._attempt.epoch,
            state=state,
            intended_at=self._tx.now,
            settled_at=None if state is CallState.INTENDED else self._tx.now,
        )

    def _key(self, call: ToolCall) -> str:
        return f"{self.turn.id}:{self.turn.step}:{call.id}"

    def _add(self, kind: Kind, body: Body) -> None:
        self._lines.append(
            Line(
                id=self._pen.ids.entry(),
                kind=kind,
                body=body,
                turn_id=self.turn.id,
                epoch=self._attempt.epoch,
            )
        )

    def _flush(self) -> None:
        self._session, written = entries.append(self._tx, self._session, self._lines)
        self._written += written
        self._lines = []

    def _publish(self, kind: str, data: dict[str, object], stimulus_id: str | None = None) -> None:
        self._pen.bus.publish(
            self._tx,
            Event(
                kind=kind,
                session_key=self.turn.session_key,
                turn_id=self.turn.id,
                stimulus_id=stimulus_id,
                data=data,
            ),
        )


def in_doubt(call: ToolCall) -> CallOutcome:
    """Return the result of a call that was cut off and may or may not have acted."""
    result = ToolResult(text=f"{notes.UNKNOWN}: {call.name}", is_error=True)
    return CallOutcome(call=call, result=result, state=CallState.UNKNOWN)


def opening_line(ids: Ids, stimulus: Stimulus, turn_id: str, epoch: int, text: str = "") -> Line:
    """Return the entry that shows a stimulus to the model; there is one per stimulus, ever."""
    body = UserBody(
        text=(text or stimulus.text) + notes.attached(stimulus.attachments),
        source=stimulus.source,
        is_external=stimulus.trust is Trust.EXTERNAL,
    )
    return Line(
        id=ids.entry(),
        kind=Kind.MESSAGE,
        body=body,
        turn_id=turn_id,
        stimulus_id=stimulus.id,
        epoch=epoch,
    )
