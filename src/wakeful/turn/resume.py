"""Read back from the ledgers how far a turn's current step came."""

from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.sessions import Session
from wakeful.turn.attempt import StepState, TurnAttempt
from wakeful.turns import asks, tool_calls
from wakeful.turns.asks import Purpose
from wakeful.vocabulary.entry import AssistantBody, EntryKind


def load_step(tx: Tx, session: Session, attempt: TurnAttempt) -> bool:
    """Bring an attempt's step in line with the rows; False if no answer is there yet.

    May run any number of times with the same outcome.
    """
    turn = attempt.turn
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
