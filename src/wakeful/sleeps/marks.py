"""Marks of sleeps: where each began and ended, kept when the sleep itself is long over."""

from enum import StrEnum

from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record


class SleepEdge(StrEnum):
    ENTERED = "entered"
    ENDED = "ended"


class SleepMark(Record):
    """One end of a sleep."""

    id: str
    at: int
    sleep_id: str
    agent_id: str
    session_key: str | None
    edge: SleepEdge
    source: str  # whoever let it sleep, or woke it
    reason: str  # why it sleeps
    entered_at: int
    wake_at: int  # when it was to end


SLEEP_MARKS = RowTable("sleep_marks", SleepMark)


def add(tx: Tx, sleep: Sleep, edge: SleepEdge, source: str) -> None:
    """Mark that a sleep began or ended, in the commit in which it does."""
    # Numbered, so that a sleep which ends in the commit that begins it is told in that order.
    number = 1 if edge is SleepEdge.ENTERED else 2
    mark = SleepMark(
        id=f"{sleep.id}.{number}",
        at=tx.now,
        sleep_id=sleep.id,
        agent_id=sleep.agent_id,
        session_key=sleep.session_key,
        edge=edge,
        source=source,
        reason=sleep.reason,
        entered_at=sleep.created_at,
        wake_at=sleep.wake_at,
    )
    tx.run(SLEEP_MARKS.insert, **SLEEP_MARKS.params(mark))


def end_unread(tx: Tx, owner: str, source: str) -> None:
    """Mark that an owner's sleep ended, if it sleeps; its row need not be readable."""
    tx.run(
        f"INSERT INTO sleep_marks ({SLEEP_MARKS.columns}) "  # noqa: S608 (names of ours)
        "SELECT id || '.2', CAST(:now AS BIGINT), id, agent_id, session_key, 'ended', "
        "CAST(:source AS TEXT), reason, created_at, wake_at FROM sleeps WHERE owner = :owner",
        now=tx.now,
        source=source,
        owner=owner,
    )


def prune(tx: Tx, before: int, limit: int) -> str | None:
    """Forget the sleeps of before an instant; None when done."""
    gone = tx.run(
        "DELETE FROM sleep_marks WHERE id IN "
        "(SELECT id FROM sleep_marks WHERE at < :before ORDER BY at LIMIT :limit)",
        before=before,
        limit=limit,
    )
    return "more" if gone == limit else None
