"""Read back from the ledgers how far a turn's current step came."""

from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.sessions import Session
from wakeful.turn.journal import Journal
from wakeful.turns import asks, tool_calls
from wakeful.turns.asks import Purpose
from wakeful.vocabulary.entry import AssistantBody, EntryKind


def load_step(tx: Tx, session: Session, journal: Journal) -> bool:
    """Bring a journal's calls and results in line with the rows; False if no answer is there yet.

    May run any number of times with the same outcome.
    """
    turn = journal.turn
    purpose, is_answered = asks.last(tx, turn.id, turn.step)
    if not is_answered or purpose is not Purpose.REPLY:
        journal.calls, journal.settled, journal.said = (), frozenset(), ""
        journal.finished.clear()  # the commit that asked this question has them
        return is_answered
    bodies = [
        entry.content()
        for entry in entries.path(tx, session, session.context_from - 1)
        if entry.turn_id == turn.id and entry.kind is EntryKind.MESSAGE
    ]
    replies = [body.message for body in bodies if isinstance(body, AssistantBody)]
    journal.calls, journal.said = replies[-1].tool_calls, replies[-1].text
    known = tool_calls.of_step(tx, turn.id, turn.step)
    journal.settled = frozenset(
        call_id for call_id, call in known.items() if call.settled_at is not None
    )
    journal.rests = any(call.ends_turn for call in known.values())
    return True
