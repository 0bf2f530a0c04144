"""The storm guard: one source may open only so many turns in a session within a window."""

import msgspec

from wakeful.store.database import Tx
from wakeful.vocabulary.record import Record


class StormLimits(Record):
    turns: int = 8
    window_s: int = 60


class Storm(Record):
    """What the guard says about one more stimulus."""

    is_tripped: bool
    is_new: bool  # the first of its episode: exactly one notice


_times = msgspec.json.Decoder(list[int])


def note(tx: Tx, source: str, session_key: str, limits: StormLimits) -> Storm:
    """Count one turn-opening stimulus of a source and tell whether it is one too many."""
    row = tx.one(
        "SELECT recent, since FROM storms WHERE source = :source AND session_key = :key",
        source=source,
        key=session_key,
    )
    before = tx.now - limits.window_s * 1000
    # A time in the future was written before the clock was moved back: it counts as now.
    recent = [min(at, tx.now) for at in _times.decode(row[0]) if at > before] if row else []
    since = row[1] if row else None
    is_tripped = len(recent) >= limits.turns
    is_new = is_tripped and since is None
    if not is_tripped:
        recent.append(tx.now)
    tx.run(
        "INSERT INTO storms (source, session_key, recent, since, seen_at) "
        "VALUES (:source, :key, :recent, :since, :now) ON CONFLICT (source, session_key) "
        "DO UPDATE SET recent = :recent, since = :since, seen_at = :now",
        source=source,
        key=session_key,
        recent=msgspec.json.encode(recent).decode(),
        since=(since if since is not None else tx.now) if is_tripped else None,
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
