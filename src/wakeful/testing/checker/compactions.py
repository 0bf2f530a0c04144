"""I17 compaction."""

from wakeful.testing.checker.finding import Finding
from wakeful.testing.checker.history import History
from wakeful.transcript.sessions import Session
from wakeful.turn.context import last_compaction
from wakeful.vocabulary.entry import Entry


def one_view(history: History, finding: Finding) -> None:
    """I17: a session shows the view before a compaction or the one after it, never a mix."""
    for session in history.db.sessions.values():
        _check_view(session, history.path(session.branch), finding)


def _check_view(session: Session, entries: list[Entry], finding: Finding) -> None:
    found = last_compaction(entries)
    if found is None:
        finding.expect(
            (session.context_from, session.cycle) == (0, ""),
            f"{session.key} shows entries from {session.context_from} on without a compaction",
        )
        return
    entry, body = found
    finding.expect(
        session.context_from == body.first_kept_depth,
        f"{session.key} shows entries from {session.context_from} on, "
        f"its last compaction keeps those from {body.first_kept_depth} on",
    )
    cycle = entry.id if body.undoes is None else None
    finding.expect(
        cycle is None or session.cycle == cycle,
        f"{session.key} is in the cycle {session.cycle!r}, its last compaction is {entry.id}",
    )
    finding.expect(
        0 <= body.first_kept_depth <= entry.depth,
        f"the compaction {entry.id} of {session.key} keeps what comes after itself",
    )
