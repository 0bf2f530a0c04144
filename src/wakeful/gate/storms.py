"""The storm guard: one source may open only so many turns in a session within a window."""

import msgspec

from wakeful.store.database import Tx
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import StormLimits


class Storm(Record):
    """What the guard says about one more stimulus."""

    is_tripped: bool
    is_new: bool  # the first of its episode: exactly one notice


_times = msgspec.json.Decoder(list[int])


def note(tx: Tx, source: str, session_key: str, limits: StormLimits) -> Storm:
    """Count one turn-opening stimulus of a source and tell whether it is one too many.

    An episode lasts until nothing was too many for a whole window: whoever goes on for hours is
    told of once.
    """
    row = tx.one(
        "SELECT recent, since, tripped_at FROM storms "
        "WHERE source = :source AND session_key = :key",
        source=source,
        key=session_key,
    )
    before = tx.now - limits.window_s * 1000
    # A time in the future was written before the clock was moved back: it counts as now.
    recent = [min(at, tx.now) for at in _times.decode(row[0]) if at > before] if row else []
    since, tripped_at = (row[1], row[2]) if row else (None, None)
    if tripped_at is None or min(tripped_at, tx.now) <= before:
        since = None
    is_tripped = len(recent) >= limits.turns
    is_new = is_tripped and since is None
    if is_tripped:
        since, tripped_at = tx.now if since is None else since, tx.now
    else:
        recent.append(tx.now)
    tx.run(
        "INSERT INTO storms (source, session_key, recent, since, tripped_at, seen_at) "
        "VALUES (:source, :key, :recent, :since, :tripped_at, :now) "
        "ON CONFLICT (source, session_key) DO UPDATE SET recent = :recent, since = :since, "
        "tripped_at = :tripped_at, seen_at = :now",
        source=source,
        key=session_key,
        recent=msgspec.json.encode(recent).decode(),
        since=since,
        tripped_at=tripped_at,
        now=tx.now,
    )
    return Storm(is_tripped=is_tripped, is_new=is_new)


def prune(tx: Tx, before: int, limit: int) -> str | None:
    """Forget sources that have been quiet since an instant; None when done."""
    gone = tx.run(
        "DELETE FROM storms WHERE (source, session_key) IN "
        "(SELECT source, session_key FROM storms WHERE seen_at < :before LIMIT :limit)",
        before=before,
        limit=limit,
    )
    return "more" if gone == limit else None
