"""Read back from the ledgers how far a turn's current step came."""

from collections.abc import Iterable

from wakeful.approvals import approvals
from wakeful.approvals.approvals import Approval
from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.sessions import Session
from wakeful.turn.attempt import StepState, TurnAttempt
from wakeful.turns import asks, tool_calls
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import Turn
from wakeful.vocabulary.entry import AssistantBody, EntryKind
from wakeful.vocabulary.message import ToolCall


def load_step(tx: Tx, session: Session, attempt: TurnAttempt) -> bool:
    """Bring an attempt's step in line with the rows; False if no answer is there yet.

    May run any number of times with the same outcome.
    """
    turn = attempt.turn
    begun = _begun_approval(tx, turn)
    if begun is not None:
        attempt.step = begun
        return True
    purpose, is_answered = asks.last(tx, turn.id, turn.step)
    if not is_answered or purpose is not Purpose.REPLY:
        attempt.step = StepState()
        attempt.finished.clear()  # the commit that asked this question has them
        return is_answered
    bodies = [
        entry.content()
        for entry in entries.path_of_turn(tx, session, turn.id)
        if entry.kind is EntryKind.MESSAGE
    ]
    reply = [body.message for body in bodies if isinstance(body, AssistantBody)][-1]
    known = tool_calls.of_step(tx, turn.id, turn.step)
    settled = [call_id for call_id, call in known.items() if call.settled_at is not None]
    attempt.step = StepState(reply.tool_calls, settled, said=reply.text, thought=reply.thought)
    attempt.step.rests = any(call.ends_turn for call in known.values())
    return True


def approved_step(approval: Approval, settled: Iterable[str] = ()) -> StepState:
    """Return the step that is one call which was approved; no reply of a model holds it."""
    call = ToolCall(
        id=approval.id, name=approval.tool or "", arguments=approvals.arguments_of(approval)
    )
    return StepState((call,), settled, approved=approval.number)


def _begun_approval(tx: Tx, turn: Turn) -> StepState | None:
    """Return the approved call that a turn has begun with, if no question came after it."""
    if turn.step != 0:
        return None
    for call_id, known in tool_calls.of_step(tx, turn.id, 0).items():
        approval = approvals.get(tx, call_id)
        if approval is not None and approval.used_by == turn.id:
            step = approved_step(approval, [call_id] if known.settled_at is not None else [])
            step.rests = known.ends_turn
            return step
    return None
