"""Timer rows; nothing about them is held in memory."""

from wakeful.store.database import Tx
from wakeful.store.rows import Table
from wakeful.vocabulary.record import Record

SET = "timer.set"  # a timer may now be the next: when it is due


class Timer(Record):
    """Something due at an instant."""

    id: str
    due_at: int
    kind: str
    target: str  # the session it is about; its lane is locked when it fires
    payload: str = "{}"


TIMERS = Table("timers", Timer)


# When the timer is due that must fire first.
FIRST_DUE = "SELECT MIN(due_at) FROM timers"


def late_s(first_due_at: int | None, now: int) -> float:
    """Return how late the first timer is: more than a moment, and the timekeeper is in trouble."""
    return 0.0 if first_due_at is None else max(0, now - first_due_at) / 1000


def put(tx: Tx, timer: Timer) -> None:
    """Set a timer; the same id replaces the earlier one."""
    tx.run(
        f"{TIMERS.insert} ON CONFLICT (id) DO UPDATE SET due_at = :due_at, kind = :kind, "
        "target = :target, payload = :payload",
        **TIMERS.params(timer),
    )
    tx.notify(SET, str(timer.due_at))


def forget(tx: Tx, target: str) -> None:
    """Drop whatever is still to come for a session."""
    tx.run("DELETE FROM timers WHERE target = :target", target=target)


def take(tx: Tx, timer: Timer) -> bool:
    """Claim a due timer by removing it; False if it was fired, moved or cancelled meanwhile."""
    return (
        tx.one(
            "DELETE FROM timers WHERE id = :id AND due_at = :due_at RETURNING id",
            id=timer.id,
            due_at=timer.due_at,
        )
        is not None
    )
