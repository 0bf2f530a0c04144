"""The tool calls of a step: which run next, which together, and what came of each.

A call that must be approved never begins: its result, in the commit that asks, says so. One that
was approved is a step of its own; the commit in which it begins uses the grant up.
"""

import logging
from collections.abc import Container, Sequence
from functools import partial
from itertools import islice, takewhile

from wakeful.approvals import approvals
from wakeful.approvals.asking import Asker, ask_for_call
from wakeful.broker import lane_rows
from wakeful.prompts import approvals as prompts
from wakeful.prompts import notes
from wakeful.store.backend import Rerun
from wakeful.store.database import LocksNeeded
from wakeful.tools.running import cut, locks_of, run_in_ledger
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolResult
from wakeful.turn.attempt import CallOutcome, StepState
from wakeful.turn.commit import TurnCommit
from wakeful.turns import tool_calls, turns
from wakeful.turns.tool_calls import CallState, RecordedCall, call_key, output_id
from wakeful.turns.turns import Phase, Turn
from wakeful.vocabulary.approving import ApprovalState, Permission, permission_of
from wakeful.vocabulary.entry import EntryKind, NoteBody, ToolBody
from wakeful.vocabulary.errors import (
    InvalidInput,
    Invariant,
    StoreFailed,
    Transient,
    WakefulError,
)
from wakeful.vocabulary.message import ToolCall, ToolMessage, encode_message
from wakeful.vocabulary.stimulus import Trust
from wakeful.vocabulary.text import error_text

log = logging.getLogger(__name__)

APPROVED = "approved"  # the topic of the line that shows what came of an approved call
MOST_BESIDE = 16  # reads at once: each may hold a thread, a connection and a page of the web


class LedgerToolFailed(Exception):
    """A ledger tool raised; its transaction was rolled back and its call needs a result."""

    def __init__(self, call: ToolCall, cause: Exception) -> None:
        super().__init__(str(cause))
        self.call = call
        kind = "" if isinstance(cause, InvalidInput) else f"{type(cause).__name__}: "
        self.error_text = kind + error_text(cause)
        self._cause = cause

    def note(self) -> None:
        """Log it: what the tool itself refused in words needs no traceback."""
        is_refusal = isinstance(self._cause, WakefulError)
        shown = None if is_refusal else self._cause
        log.warning(
            "the ledger tool %r failed: %s", self.call.name, self.error_text, exc_info=shown
        )


def next_group(commit: TurnCommit) -> tuple[ToolCall, ...]:
    """Return the calls that run together: reads side by side, everything else alone."""
    open_calls = commit.step.open_calls
    reads = takewhile(lambda call: _is_read(commit, call), open_calls)
    return tuple(islice(reads, MOST_BESIDE)) or tuple(islice(open_calls, 1))


def settle_at_once(commit: TurnCommit, call: ToolCall) -> bool:
    """Give a call its result in this very commit, if it is one that can have it."""
    outcome = _unrun(commit, call)
    if outcome is None:
        tool = _tool(commit, call)
        assert tool is not None
        if tool.effect is not Effect.LEDGER or needs_preparation(tool, call, commit.prepared):
            return False
        result = _run_in_ledger(commit, tool, call)
        state = CallState.FAILED if result.is_error else CallState.DONE
        outcome = CallOutcome(call=call, result=result, state=state)
    if call.id not in commit.prepared:  # else it was counted when it was prepared
        _count(commit, 1)
    _use_grant(commit, call)
    tool_calls.add(commit.tx, [_row(commit, call)])
    _write(commit, outcome)
    return True


def _unrun(commit: TurnCommit, call: ToolCall) -> CallOutcome | None:
    """Return the result of a call that does not run: no tool, not allowed, or not yet."""
    tool, step = _tool(commit, call), commit.step
    if tool is None:
        return CallOutcome(call=call, result=_missing(commit, call), state=CallState.FAILED)
    permission = permission_of(commit.agent.config.approvals, tool.name)
    if permission.rule is Permission.DENY:  # also what was approved before that was the rule
        result = ToolResult(text=prompts.NOT_ALLOWED.format(tool=tool.name), is_error=True)
        return CallOutcome(call=call, result=result, state=CallState.SKIPPED)
    if step.approved is not None or permission.rule is Permission.ALLOW:
        return None
    try:
        tool.parse(call.arguments)  # nobody is asked about a call that could not run
    except InvalidInput as error:
        result = ToolResult(text=str(error), is_error=True)
        return CallOutcome(call=call, result=result, state=CallState.FAILED)
    asker = Asker(tx=commit.tx, ids=commit.deps.ids, turn=commit.turn, publish=commit.publish)
    asked = ask_for_call(asker, tool.name, call.arguments, permission)
    is_open = asked.state is ApprovalState.OPEN
    text = prompts.ASK_FIRST if is_open else prompts.RUNS_NEXT
    result = ToolResult(text=text.format(number=asked.number, tool=tool.name), ends_turn=True)
    return CallOutcome(call=call, result=result, state=CallState.ASKED)


def needs_preparation(tool: Tool, call: ToolCall, prepared: Container[str]) -> bool:
    """Tell whether a ledger tool must have files read before its commit."""
    return (
        tool.prepare is not None and bool(call.arguments.get("files")) and call.id not in prepared
    )


def intend(commit: TurnCommit, group: Sequence[ToolCall]) -> None:
    """Write down that calls are about to run."""
    for call in group:
        _use_grant(commit, call)
    tool_calls.add(commit.tx, [_row(commit, call) for call in group])
    for call in group:
        commit.publish("turn.tool", call_id=call.id, name=call.name, phase="started")
    _count(commit, len(group))


def write_outcomes(commit: TurnCommit, outcomes: Sequence[CallOutcome]) -> None:
    """Write results; what has a result never runs again."""
    for outcome in outcomes:
        if commit.step.is_open(outcome.call.id):
            _write(commit, outcome)


def skip_open(commit: TurnCommit, reason: str) -> None:
    """Close the calls that will not run: what had begun is in doubt, the rest was skipped."""
    open_calls = tuple(commit.step.open_calls)
    if not open_calls:
        return
    begun = tool_calls.of_step(commit.tx, commit.turn.id, commit.turn.step)
    skipped = [_row(commit, call) for call in open_calls if call.id not in begun]
    tool_calls.add(commit.tx, skipped)
    for call in open_calls:
        if call.id in begun and begun[call.id].effect != Effect.LEDGER.value:
            _write(commit, in_doubt(call))
            continue
        result = ToolResult(text=reason, is_error=True)
        _write(commit, CallOutcome(call=call, result=result, state=CallState.SKIPPED))


def may_run_again(commit: TurnCommit, call: ToolCall, effect: str) -> bool:
    """Tell whether a call that began, and was cut off, is run once more.

    A ledger tool acts in the commit of its result: before that, only files were read for it. What
    repeats with its key must still be allowed: otherwise nobody could tell what came of it.
    """
    if effect != Effect.IDEMPOTENT.value:
        return effect in (Effect.READ.value, Effect.LEDGER.value)
    rule = permission_of(commit.agent.config.approvals, call.name).rule
    is_approved = commit.step.approved is not None
    return rule is Permission.ALLOW or (rule is Permission.ASK and is_approved)


def in_doubt(call: ToolCall) -> CallOutcome:
    """Return the result of a call that was cut off and may or may not have acted."""
    result = ToolResult(text=f"{notes.UNKNOWN}: {call.name}", is_error=True)
    return CallOutcome(call=call, result=result, state=CallState.UNKNOWN)


def _is_read(commit: TurnCommit, call: ToolCall) -> bool:
    tool = _tool(commit, call)
    if tool is None or tool.effect is not Effect.READ:
        return False
    return permission_of(commit.agent.config.approvals, tool.name).rule is Permission.ALLOW


def _tool(commit: TurnCommit, call: ToolCall) -> Tool | None:
    turn = commit.turn
    return commit.agent.toolbox.get(call.name, turn.trust, usable(turn, call, commit.step))


def usable(turn: Turn, call: ToolCall, step: StepState) -> tuple[str, ...]:
    """Return the tools that a call may use beyond those of its turn's trust.

    What was approved is this one call: the turn itself may do no more than before.
    """
    return turn.granted if step.approved is None else (*turn.granted, call.name)


def _use_grant(commit: TurnCommit, call: ToolCall) -> None:
    """Use up the grant of an approved call, in the commit in which it begins."""
    if commit.step.approved is not None and not approvals.use(commit.tx, call.id, commit.turn.id):
        raise Invariant(f"the call {call.id!r} has no grant that it may use")


def _missing(commit: TurnCommit, call: ToolCall) -> ToolResult:
    is_other = commit.turn.config_hash != commit.agent.config_hash
    was_there = is_other or commit.step.approved is not None
    text = notes.GONE if was_there else f"there is no tool {call.name!r}"
    return ToolResult(text=text, is_error=True)


def _run_in_ledger(commit: TurnCommit, tool: Tool, call: ToolCall) -> ToolResult:
    failure = commit.ledger_failures.get(call.id)
    if failure is not None:
        return ToolResult(text=failure, is_error=True)
    commit.flush()
    key = _key(commit.turn, call)
    lane_rows.require(commit.tx, locks_of(tool, call, key, commit.turn))
    context = LedgerContext(
        tx=commit.tx,
        ids=commit.deps.ids,
        turn=commit.turn,
        session=commit.session,
        agent=commit.agent.config,
        key=key,
        publish=commit.publish,
        file=partial(commit.deps.file, commit.tx),
        proactive=commit.deps.proactive_of(commit.session),
        attachments=commit.prepared.get(call.id, ()),
        automations=commit.deps.automations,
        settle=partial(commit.deps.settlement.settle, commit.tx),
    )
    try:
        return run_in_ledger(tool, call, context)
    except (Rerun, Transient, StoreFailed, LocksNeeded):
        raise  # the store's own: no word about the tool
    except Exception as error:
        raise LedgerToolFailed(call, error) from error


def _write(commit: TurnCommit, outcome: CallOutcome) -> None:
    call, result, turn = outcome.call, outcome.result, commit.turn
    place = output_id(turn.id, turn.step, commit.step.positions[call.id])
    shown, whole = cut(result.text, place)
    tool_calls.settle(
        commit.tx,
        turn.id,
        turn.step,
        call.id,
        state=outcome.state,
        output=whole,
        ends_turn=result.ends_turn,
    )
    _show(commit, outcome, shown)
    if result.is_external:
        commit.taint()
    if result.ends_grants:
        commit.narrow(())
    if result.sleep is not None:
        commit.turn = turns.intend_sleep(commit.tx, commit.turn, result.sleep)
    commit.step.settle(call.id, ends_turn=result.ends_turn)
    commit.publish("turn.tool", call_id=call.id, name=call.name, phase=outcome.state.value)


def _show(commit: TurnCommit, outcome: CallOutcome, shown: str) -> None:
    """Add the line with which the model reads a result; no reply of its own is made up for it."""
    call, result, number = outcome.call, outcome.result, commit.step.approved
    attached = commit.keep(result.attachments)
    if number is not None:
        text = prompts.approved(number, call.name, approvals.canonical(call.arguments), shown)
        # Its arguments were written by whoever asked, and may repeat what a stranger said.
        is_external = result.is_external or commit.turn.trust is Trust.EXTERNAL
        note = NoteBody(topic=APPROVED, text=text, is_external=is_external, attachments=attached)
        commit.add(note, kind=EntryKind.CUSTOM_MESSAGE)
        return
    message = ToolMessage(
        call_id=call.id,
        name=call.name,
        text=shown,
        is_error=result.is_error,
        attachments=attached,
    )
    commit.add(ToolBody(message=message, is_external=result.is_external))


def _row(commit: TurnCommit, call: ToolCall) -> RecordedCall:
    tool = _tool(commit, call)
    return RecordedCall(
        turn_id=commit.turn.id,
        step=commit.turn.step,
        call_id=call.id,
        position=commit.step.positions[call.id],
        name=call.name,
        effect="none" if tool is None else tool.effect.value,
        arguments=encode_message(call.arguments).decode(),
        epoch=commit.epoch,
        state=CallState.INTENDED,
        intended_at=commit.tx.now,
    )


def _count(commit: TurnCommit, count: int) -> None:
    turn = commit.turn
    commit.enter(Phase.TOOLS, step=turn.step, tool_calls=turn.tool_calls + count)


def _key(turn: Turn, call: ToolCall) -> str:
    return call_key(turn.id, turn.step, call.id)
