"""Old runs are forgotten, and with those of isolated automations what was said in them."""

from collections.abc import Sequence

from wakeful.store.database import Row, Tx
from wakeful.transcript import discards

# The last run of an isolated automation stays: its session shows what was said in it.
_IS_BEHIND = (
    "(transcript_id IS NULL OR NOT EXISTS (SELECT 1 FROM sessions WHERE "
    "sessions.key = automation_runs.session_key "
    "AND sessions.transcript_id = automation_runs.transcript_id))"
)
_OLD = (
    "SELECT id, transcript_id FROM automation_runs "  # noqa: S608 (words of ours)
    f"WHERE ended_at < :before AND {_IS_BEHIND} ORDER BY ended_at, id LIMIT :limit"
)
_BEYOND = (
    "SELECT id, transcript_id FROM automation_runs "  # noqa: S608 (words of ours)
    f"WHERE job_id = :job_id AND ended_at IS NOT NULL AND {_IS_BEHIND} "
    "ORDER BY filed_at DESC, id DESC LIMIT :limit OFFSET :most"
)


def prune_old(tx: Tx, before: int, limit: int) -> str | None:
    """Forget runs that ended before an instant; None when done."""
    rows = tx.all(_OLD, before=before, limit=limit)
    return "more" if _forget(tx, rows) and len(rows) == limit else None


def prune_beyond(tx: Tx, after: str, most: int, limit: int) -> str | None:
    """Forget the oldest runs of the next job that has more than it may; return which job it was."""
    row = tx.one("SELECT MIN(job_id) FROM automation_runs WHERE job_id > :after", after=after)
    job_id = None if row is None else row[0]
    if job_id is None:
        return None
    rows = tx.all(_BEYOND, job_id=job_id, most=most, limit=limit)
    return after if _forget(tx, rows) and len(rows) == limit else job_id


def _forget(tx: Tx, rows: Sequence[Row]) -> int:
    """Forget runs, and the transcripts that were theirs alone; return how many went."""
    own = [row[1] for row in rows if row[1] is not None]
    for transcript_id in own:
        discards.discard(tx, transcript_id)
    tx.run("DELETE FROM past_transcripts WHERE id IN :ids", ids=own)
    return tx.run("DELETE FROM automation_runs WHERE id IN :ids", ids=[row[0] for row in rows])
