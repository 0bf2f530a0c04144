"""Branches: a path through a transcript is a few stretches of branches, newest entry last."""

from collections.abc import Sequence

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record


class Branch(Record):
    """One line of a transcript's tree."""

    id: str
    transcript_id: str
    session_key: str  # that made it; empty: the one that began the transcript
    parent: str | None
    fork_depth: int
    created_at: int


class Segment(Record):
    """A stretch of one branch, both ends included."""

    branch: str
    first: int
    last: int


class Tip(Record):
    """The end of a path."""

    transcript_id: str
    branch: str
    fork_depth: int = -1
    leaf_id: str | None = None
    leaf_depth: int = -1


BRANCHES = RowTable("branches", Branch)

# A branch and those it came from, the newest first: forks lie ever deeper along a path.
CHAIN = (
    "WITH RECURSIVE chain (id, transcript_id, session_key, parent, fork_depth, created_at) AS ("
    "SELECT id, transcript_id, session_key, parent, fork_depth, created_at FROM branches "
    "WHERE id = :branch UNION ALL "
    "SELECT older.id, older.transcript_id, older.session_key, older.parent, older.fork_depth, "
    "older.created_at FROM branches older JOIN chain ON older.id = chain.parent) "
    "SELECT id, transcript_id, session_key, parent, fork_depth, created_at FROM chain "
    "ORDER BY fork_depth DESC"
)


def add(tx: Tx, branch: Branch) -> None:
    tx.run(f"{BRANCHES.insert} ON CONFLICT DO NOTHING", **BRANCHES.params(branch))


def of_transcript(tx: Tx, transcript_id: str) -> list[Branch]:
    rows = tx.all(BRANCHES.select("WHERE transcript_id = :id"), id=transcript_id)
    return [BRANCHES.read(row) for row in rows]


def beginner(rows: Sequence[Branch]) -> str | None:
    """Return the session that began a transcript; None: the only one that ever had it."""
    return next((row.session_key for row in rows if row.parent is None), None)


def count(tx: Tx, transcript_id: str, session_key: str) -> int:
    """Return how many branches of a transcript a session has made."""
    row = tx.one(
        "SELECT COUNT(*) FROM branches WHERE transcript_id = :id AND session_key = :key",
        id=transcript_id,
        key=session_key,
    )
    assert row is not None
    return row[0]


def owned(rows: Sequence[Branch], session_key: str) -> list[Branch]:
    """Return those branches of a transcript that a session made."""
    first = beginner(rows)
    return [row for row in rows if (row.session_key or first or session_key) == session_key]


def segments(
    tx: Tx, branch: str, *, fork_depth: int, leaf_depth: int, after: int = -1
) -> list[Segment]:
    """Return the stretches of the path to a leaf that lie below a depth, oldest first.

    A path without forks asks the database nothing.
    """
    if fork_depth <= after:
        return stretches(branch, [], leaf_depth, after)
    chain = [BRANCHES.read(row) for row in tx.all(CHAIN, branch=branch)]
    return stretches(branch, chain, leaf_depth, after)


def stretches(
    branch: str, chain: Sequence[Branch], leaf_depth: int, after: int = -1
) -> list[Segment]:
    """Cut the path from a leaf to the root at its forks, as far as it lies below `after`."""
    found: list[Segment] = []
    at: str | None = branch
    last = leaf_depth
    for fork in [*chain, None]:
        if at is None or last <= after:
            break
        start = after if fork is None else max(fork.fork_depth, after)
        if start < last:
            found.append(Segment(branch=at, first=start + 1, last=last))
            last = start
        at = None if fork is None else fork.parent
    return found[::-1]
