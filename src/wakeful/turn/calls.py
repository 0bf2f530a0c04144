"""The tool calls of a step: which run next, which together, and what came of each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile

from wakeful.broker import lanes
from wakeful.broker.lanes import LanesNeeded
from wakeful.prompts import notes
from wakeful.store.backend import Rerun
from wakeful.tools.running import cut, locks_of, run_in_ledger
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolResult
from wakeful.turn.agent import Mind
from wakeful.turn.journal import CallOutcome
from wakeful.turn.sheet import Sheet
from wakeful.turns import tool_calls
from wakeful.turns.tool_calls import Call, CallState, call_key, output_id
from wakeful.turns.turns import Phase
from wakeful.vocabulary.entry import ToolBody
from wakeful.vocabulary.errors import InvalidInput, StoreFailed, Transient
from wakeful.vocabulary.message import ToolCall, ToolMessage, encode_message
from wakeful.vocabulary.text import told

MOST_BESIDE = 16  # reads at once: each may hold a thread, a connection and a page of the web


class LedgerToolFailed(Exception):
    """A ledger tool raised; its transaction was rolled back and its call needs a result."""

    def __init__(self, call: ToolCall, cause: Exception) -> None:
        super().__init__(str(cause))
        self.call = call
        kind = "" if isinstance(cause, InvalidInput) else f"{type(cause).__name__}: "
        self.told = kind + told(cause)


class StepCalls:
    """The calls of one reply, on the sheet of one commit."""

    def __init__(
        self, sheet: Sheet, mind: Mind, calls: tuple[ToolCall, ...], settled: Iterable[str]
    ) -> None:
        self._sheet = sheet
        self._mind = mind
        self.all = calls
        self.settled = set(settled)
        self._positions = {call.id: position for position, call in enumerate(calls)}
        self._remaining = {call.id: call for call in calls if call.id not in self.settled}
        self.rests = False  # a result said that the turn should end
        self.ledger_failures: Mapping[str, str] = {}

    def remaining(self) -> Collection[ToolCall]:
        """Return the calls without a result, in their order; it changes as they get theirs."""
        return self._remaining.values()

    def next_group(self) -> tuple[ToolCall, ...]:
        """Return the calls that run together: reads side by side, everything else alone."""
        reads = tuple(islice(takewhile(self._is_read, self.remaining()), MOST_BESIDE))
        return reads or tuple(islice(self.remaining(), 1))

    def settle_at_once(self, call: ToolCall) -> bool:
        """Give a call its result in this very commit, if it is one that can have it."""
        tool = self._tool(call)
        if tool is None:
            result = self._missing(call)
        elif tool.effect is Effect.LEDGER:
            result = self._run_in_ledger(tool, call)
        else:
            return False
        self._count(1)
        state = CallState.FAILED if result.is_error else CallState.DONE
        tool_calls.add(self._sheet.tx, [self._row(call)])
        self._write(CallOutcome(call=call, result=result, state=state))
        return True

    def intend(self, group: Sequence[ToolCall]) -> None:
        """Write down that calls are about to run."""
        tool_calls.add(self._sheet.tx, [self._row(call) for call in group])
        for call in group:
            self._sheet.publish("turn.tool", call_id=call.id, name=call.name, phase="started")
        self._count(len(group))

    def write(self, outcomes: Sequence[CallOutcome]) -> None:
        """Write results; what has a result never runs again."""
        for outcome in outcomes:
            if outcome.call.id not in self.settled:
                self._write(outcome)

    def skip(self, reason: str) -> None:
        """Close the calls that will not run: what had begun is in doubt, the rest was skipped."""
        remaining = tuple(self.remaining())
        if not remaining:
            return
        turn = self._sheet.turn
        begun = tool_calls.of_step(self._sheet.tx, turn.id, turn.step)
        skipped = [self._row(call) for call in remaining if call.id not in begun]
        tool_calls.add(self._sheet.tx, skipped)
        for call in remaining:
            if call.id in begun:
                self._write(in_doubt(call))
                continue
            result = ToolResult(text=reason, is_error=True)
            self._write(CallOutcome(call=call, result=result, state=CallState.SKIPPED))

    def _is_read(self, call: ToolCall) -> bool:
        tool = self._tool(call)
        return tool is not None and tool.effect is Effect.READ

    def _tool(self, call: ToolCall) -> Tool | None:
        turn = self._sheet.turn
        return self._mind.toolbox.get(call.name, turn.trust, turn.granted)

    def _missing(self, call: ToolCall) -> ToolResult:
        was_there = self._sheet.turn.config_hash != self._mind.config_hash
        text = notes.GONE if was_there else f"there is no tool {call.name!r}"
        return ToolResult(text=text, is_error=True)

    def _run_in_ledger(self, tool: Tool, call: ToolCall) -> ToolResult:
        turn, failure = self._sheet.turn, self.ledger_failures.get(call.id)
        if failure is not None:
            return ToolResult(text=failure, is_error=True)
        self._sheet.flush()
        lanes.require(self._sheet.tx, locks_of(tool, call, self._key(call), turn))
        context = LedgerContext(
            tx=self._sheet.tx,
            ids=self._sheet.pen.ids,
            turn=turn,
            session=self._sheet.session,
            agent=self._mind.config,
            key=self._key(call),
            publish=self._sheet.publish,
            file=partial(self._sheet.pen.file, self._sheet.tx),
        )
        try:
            return run_in_ledger(tool, call, context)
        except (Rerun, Transient, StoreFailed, LanesNeeded):
            raise  # the store's own: no word about the tool
        except Exception as error:
            raise LedgerToolFailed(call, error) from error

    def _write(self, outcome: CallOutcome) -> None:
        call, result, turn = outcome.call, outcome.result, self._sheet.turn
        shown, whole = cut(result.text, output_id(turn.id, turn.step, self._positions[call.id]))
        tool_calls.settle(
            self._sheet.tx,
            turn.id,
            turn.step,
            call.id,
            state=outcome.state,
            output=whole,
            ends_turn=result.ends_turn,
        )
        message = ToolMessage(call_id=call.id, name=call.name, text=shown, is_error=result.is_error)
        self._sheet.add(ToolBody(message=message, is_external=result.is_external))
        if result.is_external:
            self._sheet.taint()
        self.settled.add(call.id)
        self._remaining.pop(call.id, None)
        self.rests = self.rests or result.ends_turn
        self._sheet.publish("turn.tool", call_id=call.id, name=call.name, phase=outcome.state.value)

    def _row(self, call: ToolCall) -> Call:
        tool = self._tool(call)
        return Call(
            turn_id=self._sheet.turn.id,
            step=self._sheet.turn.step,
            call_id=call.id,
            position=self._positions[call.id],
            name=call.name,
            effect="none" if tool is None else tool.effect.value,
            arguments=encode_message(call.arguments).decode(),
            epoch=self._sheet.attempt.epoch,
            state=CallState.INTENDED,
            intended_at=self._sheet.tx.now,
        )

    def _count(self, count: int) -> None:
        turn = self._sheet.turn
        self._sheet.enter(Phase.TOOLS, step=turn.step, tool_calls=turn.tool_calls + count)

    def _key(self, call: ToolCall) -> str:
        return call_key(self._sheet.turn.id, self._sheet.turn.step, call.id)


def in_doubt(call: ToolCall) -> CallOutcome:
    """Return the result of a call that was cut off and may or may not have acted."""
    result = ToolResult(text=f"{notes.UNKNOWN}: {call.name}", is_error=True)
    return CallOutcome(call=call, result=result, state=CallState.UNKNOWN)
