"""I16 transcript, I17 compaction."""

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, grouped
from wakeful.testing.checker.marks import digest
from wakeful.transcript.resets import PastTranscript
from wakeful.transcript.sessions import Session
from wakeful.turn.context import build, in_view, last_compaction
from wakeful.turn.jobs import with_prompt
from wakeful.turns.asks import Purpose
from wakeful.vocabulary.entry import Entry, chain
from wakeful.vocabulary.kinds import View


def transcripts_hold(history: History, finding: InvariantFinding) -> None:
    """I16: a tree that never changed; what was sent to the model can be built from its rows."""
    known = {entry.id: entry for entry in history.db.entries}
    for branch, entries in history.entries_of_branch.items():
        _check_branch(history, branch, entries, finding)
    for transcript_id, entries in grouped(
        history.db.entries, lambda entry: entry.transcript_id
    ).items():
        roots = [entry.id for entry in entries if entry.parent_id is None]
        finding.expect(len(roots) == 1, f"{transcript_id} has the roots {roots!r}")
    for tip in (*history.db.sessions.values(), *history.db.past):
        _check_tip(history, tip, finding)
    for session in history.db.sessions.values():
        leaf = known.get(session.leaf_id or "")
        finding.expect(
            session.leaf_hash == (leaf.hash if leaf else ""), f"{session.key}: another leaf hash"
        )
    _check_contexts(history, finding)


def _check_tip(history: History, tip: Session | PastTranscript, finding: InvariantFinding) -> None:
    """A path ends where its session, or its reset, says that it ends."""
    path = history.path(tip.branch)
    leaf = path[-1] if path else None
    finding.expect(
        (tip.leaf_id, tip.leaf_depth) == ((leaf.id, leaf.depth) if leaf else (None, -1)),
        f"the leaf of {tip.branch} is {tip.leaf_id}, not its last entry",
        [str(tip)],
    )
    row = history.db.branches.get(tip.branch)
    finding.expect(
        tip.fork_depth == (-1 if row is None else row.fork_depth),
        f"{tip.branch} does not fork where it says",
    )


def _check_branch(
    history: History, branch: str, entries: list[Entry], finding: InvariantFinding
) -> None:
    """Every entry follows the one before it, over forks, too, and vouches for it."""
    path = history.path(branch)
    first = len(path) - len(entries)
    for at, entry in enumerate(entries, first):
        parent = path[at - 1] if at else None
        finding.expect(
            entry.depth == at
            and entry.parent_id == (parent.id if parent else None)
            and (parent is None or entry.transcript_id == parent.transcript_id),
            f"{entry.id} in {branch} hangs at the wrong place",
            [str(entry)],
        )
        previous = parent.hash if parent else ""
        finding.expect(
            entry.hash == chain(previous, entry.id, entry.kind, entry.body),
            f"{entry.id} in {branch} was changed after it was written",
            [str(entry)],
        )


def _check_contexts(history: History, finding: InvariantFinding) -> None:
    """Compare the bytes that the model was sent with those that the rows give."""
    sent = grouped(history.asked, lambda line: (line["turn"], line["step"]))
    places = {entry.hash: entry for entry in history.db.entries}
    runs = {run.stimulus_id: run for run in history.db.runs.values() if run.stimulus_id}
    for ask in history.db.asks:
        lines = sent[ask.turn_id, ask.step]
        place = places.get(ask.leaf_hash)
        finding.expect(
            place is not None or ask.turn_id in history.discarded,
            f"{ask.turn_id} step {ask.step} was asked about unknown rows",
        )
        if place is None or not lines or ask.purpose is not Purpose.REPLY:
            continue
        path = history.path(place.branch)[: place.depth + 1]
        turn = history.db.turns.get(ask.turn_id)
        view = View.FULL if turn is None else turn.view
        context = build(place.branch, in_view(path, view, ask.turn_id))
        run = None if turn is None else runs.get(turn.opened_by)
        rebuilt = digest(
            context.messages if run is None else with_prompt(context, run, ask.turn_id)
        )
        finding.expect(
            all(line["digest"] == rebuilt for line in lines),
            f"{ask.turn_id} step {ask.step} was asked something that its rows do not say",
            history.story(ask.turn_id),
        )


def one_view(history: History, finding: InvariantFinding) -> None:
    """I17: a session shows the view before a compaction or the one after it, never a mix."""
    for session in history.db.sessions.values():
        _check_view(session, history.path(session.branch), finding)


def _check_view(session: Session, entries: list[Entry], finding: InvariantFinding) -> None:
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
