"""I16 transcript."""

from wakeful.testing.checker.finding import Finding
from wakeful.testing.checker.history import History, grouped
from wakeful.testing.stand_in import digest
from wakeful.turn.context import build
from wakeful.turns.asks import Purpose
from wakeful.vocabulary.entry import Entry, chain


def transcripts_hold(history: History, finding: Finding) -> None:
    """I16: a tree that never changed; what was sent to the model can be built from its rows."""
    branches = grouped(history.db.entries, lambda entry: entry.branch)
    for branch, entries in branches.items():
        _check_branch(branch, entries, finding)
    for session in history.db.sessions.values():
        entries = branches.get(session.branch, [])
        leaf = entries[-1] if entries else None
        finding.expect(
            (session.leaf_id, session.leaf_depth)
            == ((leaf.id, leaf.depth) if leaf else (None, -1)),
            f"the leaf of {session.key} is {session.leaf_id}, not its last entry",
        )
        finding.expect(
            leaf is None or session.leaf_hash == leaf.hash, f"{session.key}: another leaf hash"
        )
    _check_contexts(history, branches, finding)


def _check_branch(branch: str, entries: list[Entry], finding: Finding) -> None:
    parent: Entry | None = None
    for depth, entry in enumerate(entries):
        finding.expect(
            entry.depth == depth
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
        parent = entry


def _check_contexts(history: History, branches: dict[str, list[Entry]], finding: Finding) -> None:
    """Compare the bytes that the model was sent with those that the rows give."""
    sent = grouped(history.asked, lambda line: (line["turn"], line["step"]))
    places = {
        entry.hash: (branch, at)
        for branch, entries in branches.items()
        for at, entry in enumerate(entries)
    }
    for ask in history.db.asks:
        lines = sent[ask.turn_id, ask.step]
        place = places.get(ask.leaf_hash)
        finding.expect(
            place is not None, f"{ask.turn_id} step {ask.step} was asked about unknown rows"
        )
        if place is None or not lines or ask.purpose is not Purpose.REPLY:
            continue
        branch, at = place
        rebuilt = digest(build(branch, branches[branch][: at + 1]).messages)
        finding.expect(
            all(line["digest"] == rebuilt for line in lines),
            f"{ask.turn_id} step {ask.step} was asked something that its rows do not say",
            history.story(ask.turn_id),
        )
