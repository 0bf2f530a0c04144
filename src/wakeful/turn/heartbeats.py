"""The end of a heartbeat: people hear what is new; if nobody hears anything, it leaves no trace."""

from msgspec.structs import replace

from wakeful.broker import held
from wakeful.outbox import outbox
from wakeful.prompts.silence import spoken
from wakeful.transcript import sessions
from wakeful.triggers.heartbeat_answers import ACKNOWLEDGED, heard
from wakeful.turn.commit import TurnCommit
from wakeful.turn.context import UNSAID
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.entry import EntryKind, NoteBody


def closing(commit: TurnCommit, how: End) -> End:
    """Return how a heartbeat ends, for those who are told; the caller writes the end."""
    how = _answered(commit, how)
    if how.reply is not None:
        return how
    if outbox.has_sent(commit.tx, commit.turn.id):
        return replace(how, reason=None)
    if held.was_given(commit.tx, commit.turn.id):
        return how  # what it has read of the inbox, nobody is shown again
    body = NoteBody(topic=UNSAID, text=how.reason or how.state.value, is_hidden=True)
    commit.add(body, kind=EntryKind.CUSTOM)
    return how


def _answered(commit: TurnCommit, how: End) -> End:
    is_done = how.state is TurnState.DONE
    rules, now = commit.agent.config.heartbeat, commit.tx.now
    answer = heard(commit.session, rules, how.reply or "", now)
    if spoken(answer.text).is_silent:
        reason = answer.reason or ACKNOWLEDGED
        return replace(how, reply=None, reason=reason if is_done else how.reason)
    sessions.note_heartbeat(commit.tx, commit.session.key, answer.text, now)
    text = answer.text
    if is_done and rules.include_reasoning:
        text = _with_reasoning(text, commit.step.thought)
    return replace(how, reply=text)


def _with_reasoning(text: str, thought: str) -> str:
    """Return an answer below what led to it."""
    return f"Reasoning:\n{thought.strip()}\n\n{text}" if thought.strip() else text
