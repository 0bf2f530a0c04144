"""How full a conversation is, and what is filed for later because of it."""

import os
from pathlib import Path

from wakeful.models.model import context_window
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import Mind
from wakeful.turn.compaction import Room, room_of
from wakeful.turns.turns import Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.compacting import FOLD
from wakeful.vocabulary.kinds import Answer, Kind, Work
from wakeful.vocabulary.stimulus import Draft, Priority

MAX_FAILURES = 3  # compactions of one cycle that failed; then only somebody's wish or need tries
AGAIN_S = 3_600  # how long one asked for by the runtime itself counts as asked for

_SCOPE = "runtime"


def room(mind: Mind) -> Room:
    return room_of(mind.config.compaction, context_window(mind.model))


def is_crowded(mind: Mind, session: Session, tokens: int) -> bool:
    """Tell whether a conversation must be folded before the model is asked again."""
    return (
        mind.config.compaction.enabled
        and session.failed_compactions < MAX_FAILURES
        and tokens > room(mind).is_used_up_at
    )


def is_compaction(what: Turn | Draft) -> bool:
    return what.kind.rule.work is Work.FOLD


def is_flush(what: Turn | Draft) -> bool:
    return what.kind.rule.work is Work.REMEMBER


def is_unheard(turn: Turn) -> bool:
    """Tell whether a turn is work that the runtime gave itself: its words reach nobody."""
    answer = turn.kind.rule.answer
    return answer is Answer.NOBODY or (answer is Answer.ASKER and turn.route is None)


def is_moot(turn: Turn, mind: Mind, session: Session, tokens: int) -> bool:
    """Tell whether what the runtime gave itself to do is done, or no longer of use: another turn
    has made room meanwhile, or another conversation began.
    """
    if is_flush(turn):
        return session.flushed_cycle != cycle_of(session)
    return is_unheard(turn) and not is_crowded(mind, session, tokens)


def due_after(turn: Turn, mind: Mind, session: Session, tokens: int) -> list[Draft]:
    """Return what a finished turn leaves to be done about the size of its conversation."""
    due: list[Draft] = []
    if tokens <= room(mind).is_scarce_at or is_compaction(turn):
        return due
    if _needs_flush(turn, mind, session):
        due.append(
            _draft(turn, session, Kind.MEMORY_FLUSH, mind.config.compaction.memory_flush.prompt)
        )
    if session.failed_compactions == 0 and is_crowded(mind, session, tokens):
        due.append(_draft(turn, session, Kind.COMPACTION, FOLD))
    return due


def _needs_flush(turn: Turn, mind: Mind, session: Session) -> bool:
    """Memories are written once per cycle, by agents that can, in conversations that last."""
    return (
        mind.config.compaction.enabled
        and mind.config.compaction.memory_flush.enabled
        and session.flushed_cycle != cycle_of(session)
        and turn.kind.rule.is_remembered
        and keys.pool_of(session.key) == "main"
        and mind.toolbox.get("memory_write", turn.trust, turn.granted) is not None
        and _can_write(mind.workspace)
    )


def _can_write(workspace: Path | None) -> bool:
    """Tell whether memories could be kept; a folder that is not there yet is made."""
    return workspace is not None and (not workspace.exists() or os.access(workspace, os.W_OK))


def cycle_of(session: Session) -> str:
    """Return the id of the time since the last compaction."""
    return session.cycle or session.transcript_id


def _draft(turn: Turn, session: Session, kind: Kind, text: str) -> Draft:
    return Draft(
        session_key=session.key,
        text=text,
        kind=kind,
        priority=Priority.LATER,
        owner=session.owner,
        trust=turn.trust,  # what came from outside gets no better tools by way of the runtime
        source=kind.detail,
        scope=_SCOPE,
        dedup_key=f"{session.branch} {cycle_of(session)}",  # a fork shares its cycle, not its path
        dedup_window_s=AGAIN_S,
        cause_id=turn.id,
        root_id=turn.root_id,
        depth=turn.depth,
    )
