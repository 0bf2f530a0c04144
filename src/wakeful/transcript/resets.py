"""Resets: a new transcript in the same session; the old one stays readable.

A reset that comes while a turn is open waits for the next one to open: a turn is never cut in two.
What was accepted before it belongs to the old conversation as long as it runs first.
"""

from collections.abc import Sequence

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.transcript import sessions
from wakeful.transcript.sessions import KEPT_BY_RESET, NOTHING_CHOSEN, Overrides, Reset, Session
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.queueing import NO_OVERRIDES
from wakeful.vocabulary.record import Record


class PastTranscript(Record):
    """A transcript that a session has left behind."""

    session_key: str
    id: str
    branch: str
    fork_depth: int
    leaf_id: str | None
    leaf_depth: int
    started_at: int
    ended_at: int
    ended_by: str


PAST = RowTable("past_transcripts", PastTranscript)


class Split(Record):
    """Which of several stimuli open a turn together, and whether a new transcript begins there."""

    together: tuple[int, ...]  # their numbers
    due: Reset | None = None


def split(waiting: Sequence[Reset], numbers: Sequence[int]) -> Split:
    """Part what would open one turn where a new transcript begins; the first number goes first."""
    head = numbers[0]
    due = [reset for reset in waiting if reset.from_seq <= head]
    border = min((reset.from_seq for reset in waiting if reset.from_seq > head), default=None)
    together = tuple(number for number in numbers if border is None or number < border)
    last = max(due, key=lambda reset: reset.from_seq, default=None)
    return Split(together=together, due=last)


def may_join(waiting: Sequence[Reset], number: int) -> bool:
    """Tell whether a stimulus may join the open turn: not if a new transcript comes before it."""
    return all(number < reset.from_seq for reset in waiting)


def begin(tx: Tx, session: Session, transcript_id: str, reset: Reset) -> Session:
    """Begin a new transcript, under the lane's lock and while no turn is open.

    One that is still empty is as good as new and goes on.
    """
    waiting = tuple(one for one in session.resets if one.from_seq > reset.from_seq)
    is_new = session.leaf_id is None
    if not is_new:
        leave(tx, session, reset.by)
    fresh = _fresh(session, session.transcript_id if is_new else transcript_id, tx.now, waiting)
    sessions.begin(tx, fresh)
    return fresh


def reset_event(session: Session, fresh: Session, by: str) -> Event:
    """Return the event that tells of a new transcript."""
    is_same = session.transcript_id == fresh.transcript_id
    past = None if is_same else session.transcript_id
    data: dict[str, object] = {"transcript_id": fresh.transcript_id, "past": past, "by": by}
    return Event(kind="session.reset", session_key=session.key, data=data)


def leave(tx: Tx, session: Session, by: str) -> None:
    """Keep a session's transcript among those behind it."""
    past = PastTranscript(
        session_key=session.key,
        id=session.transcript_id,
        branch=session.branch,
        fork_depth=session.fork_depth,
        leaf_id=session.leaf_id,
        leaf_depth=session.leaf_depth,
        started_at=session.started_at,
        ended_at=tx.now,
        ended_by=by,
    )
    tx.run(PAST.insert, **PAST.params(past))


def take_back(tx: Tx, session_key: str, transcript_id: str) -> PastTranscript:
    """Take a transcript from those behind its session, which goes on in it."""
    row = tx.one(
        f"DELETE FROM past_transcripts WHERE session_key = :key AND id = :id "  # noqa: S608 (ours)
        f"RETURNING {PAST.columns}",
        key=session_key,
        id=transcript_id,
    )
    assert row is not None
    return PAST.read(row)


def forget(tx: Tx, session_key: str) -> list[str]:
    """Forget which transcripts a session has behind it; return their ids."""
    rows = tx.all(
        "DELETE FROM past_transcripts WHERE session_key = :key RETURNING id", key=session_key
    )
    return [row[0] for row in rows]


def of_session(tx: Tx, session_key: str) -> list[PastTranscript]:
    """Return the transcripts that a session has left behind, oldest first."""
    rows = tx.all(OF_SESSION, key=session_key)
    return [PAST.read(row) for row in rows]


OF_SESSION = PAST.select("WHERE session_key = :key ORDER BY ended_at, id")


def _fresh(session: Session, transcript_id: str, now: int, waiting: tuple[Reset, ...]) -> Session:
    """Return a session at the start of a transcript; the table says what is kept."""
    keeps = KEPT_BY_RESET
    chosen = {
        name: getattr(session.overrides if keeps[name] else NOTHING_CHOSEN, name)
        for name in Overrides.__struct_fields__
    }
    return Session(
        key=session.key,
        agent_id=session.agent_id,
        binding=session.binding,
        route=session.route,
        owner=session.owner,
        parent=session.parent,
        parent_kind=session.parent_kind,
        display_name=session.display_name,
        subject=session.subject,
        created_at=session.created_at,
        last_human_at=session.last_human_at,
        last_write_at=session.last_write_at,
        label=session.label if keeps["label"] else None,
        queue=session.queue if keeps["queue"] else NO_OVERRIDES,
        overrides=Overrides(**chosen),
        transcript_id=transcript_id,
        branch=transcript_id,
        started_at=now,
        resets=waiting,
    )
