"""Discards: what a deleted session leaves is removed in small steps that a kill may part.

A branch stays as long as its session does; of the others stays what a living path stands on.
"""

from wakeful import attachments
from wakeful.store.database import Tx
from wakeful.transcript import branches

STEP = 500  # entries that one write removes

_WHOLE = 2**62

_SHARES = (
    "SELECT key, branch, leaf_depth FROM sessions WHERE transcript_id = :id "
    "UNION ALL SELECT session_key, branch, leaf_depth FROM past_transcripts "
    "WHERE id = :id"
)


def discard(tx: Tx, transcript_id: str) -> None:
    """Leave a transcript to the sweep; whoever had it must be gone in this transaction."""
    tx.run(
        "INSERT INTO discarded_transcripts (id, discarded_at) VALUES (:id, :now) "
        "ON CONFLICT DO NOTHING",
        id=transcript_id,
        now=tx.now,
    )


# The next transcript that was discarded and is not removed yet.
NEXT = "SELECT id FROM discarded_transcripts WHERE id > :after ORDER BY id LIMIT 1"


def sweep(tx: Tx, transcript_id: str) -> bool:
    """Remove some of what nobody needs of a transcript; False if nothing is left to remove.

    May run any number of times; who still needs what is looked up each time.
    """
    kept = _kept(tx, transcript_id)
    left = STEP
    for branch, depth in kept.items():
        left -= _remove(tx, branch, depth, left)
        if left <= 0:
            return True
    gone = [branch for branch, depth in kept.items() if depth < 0]
    tx.run("DELETE FROM branches WHERE id IN :ids", ids=gone)
    if len(gone) == len(kept):
        tx.run("DELETE FROM imports WHERE transcript_id = :id", id=transcript_id)
    tx.run("DELETE FROM discarded_transcripts WHERE id = :id", id=transcript_id)
    return False


def _remove(tx: Tx, branch: str, depth: int, limit: int) -> int:
    """Remove entries of a branch below a depth; return how many there were."""
    rows = tx.all(
        "SELECT id FROM entries WHERE branch = :branch AND depth > :depth "
        "ORDER BY depth LIMIT :limit",
        branch=branch,
        depth=depth,
        limit=limit,
    )
    ids = [row[0] for row in rows]
    if ids:
        attachments.release(tx, ids)
        tx.run("DELETE FROM entry_lines WHERE entry_id IN :ids", ids=ids)
        tx.run("DELETE FROM entries WHERE id IN :ids", ids=ids)
    return len(ids)


def _kept(tx: Tx, transcript_id: str) -> dict[str, int]:
    """Return, per branch, the depth down to which somebody needs its entries; -1: nobody."""
    shares = tx.all(_SHARES, id=transcript_id)
    rows = branches.of_transcript(tx, transcript_id)
    kept = dict.fromkeys([transcript_id, *(row.id for row in rows)], -1)
    for _, branch, leaf_depth in shares:
        kept[branch] = max(kept.get(branch, -1), leaf_depth)
    for session_key in {row[0] for row in shares}:
        kept |= dict.fromkeys([row.id for row in branches.owned(rows, session_key)], _WHOLE)
    # The deepest forks first: what a branch needs of its parent is known before the parent's turn.
    for row in sorted(rows, key=lambda row: row.fork_depth, reverse=True):
        if row.parent is not None:
            needed = min(kept[row.id], row.fork_depth)
            kept[row.parent] = max(kept.get(row.parent, -1), needed)
    return kept
