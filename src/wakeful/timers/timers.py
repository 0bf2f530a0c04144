"""Timer rows; nothing about them is held in memory."""

from collections.abc import Collection, Sequence
from typing import Literal

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.record import Record

SET = "timer.set"  # a timer may now be the next: when it is due


class Timer(Record):
    """Something due at an instant."""

    id: str
    due_at: int
    kind: str
    target: str  # the session it is about; its lane is locked when it fires
    payload: str = "{}"
    owner_kind: Literal["session", "agent", "job"] = "session"  # the session's go with it
    failures: int = 0  # in a row
    retry_at: int | None = None  # since it failed; None: when it is due


TIMERS = RowTable("timers", Timer)

# Beside what a timer is, its row has the agent that it is for: an index counts on it.
_COLUMNS = (*TIMERS.fields, "agent_id")
_PUT = (
    f"INSERT INTO timers ({', '.join(_COLUMNS)}) "  # noqa: S608 (constants of ours)
    f"VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) ON CONFLICT (id) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _COLUMNS if name != 'id')}"
)
_NEXT = "COALESCE(retry_at, due_at)"
# Timers of known kinds: those whose time has come, the first first, and when the next one's comes.
DUE = TIMERS.select(f"WHERE {_NEXT} <= :now AND kind IN :kinds ORDER BY {_NEXT}, id LIMIT :limit")
NEXT = (
    f"SELECT {_NEXT} FROM timers WHERE kind IN :kinds "  # noqa: S608 (constants of ours)
    f"ORDER BY {_NEXT}, id LIMIT 1"
)
# Kinds that only another release knows, of timers whose time has come.
UNKNOWN_KINDS = (
    f"SELECT DISTINCT kind FROM timers WHERE {_NEXT} <= :now "  # noqa: S608 (constants of ours)
    "AND kind NOT IN :kinds"
)
BY_IDS = TIMERS.select("WHERE id IN :ids")
# When the first time comes of the timers that are for an agent, those of some kinds apart.
NEXT_OF_AGENT = (
    f"SELECT MIN({_NEXT}) FROM timers WHERE agent_id = :agent_id "  # noqa: S608 (constants of ours)
    "AND kind NOT IN :but"
)
# When the timer's time comes that must be looked at first.
FIRST_DUE = f"SELECT MIN({_NEXT}) FROM timers"  # noqa: S608 (constants of ours)


def late_s(first_due_at: int | None, now: int) -> float:
    """Return how late the first timer is: more than a moment, and the timekeeper is in trouble."""
    return 0.0 if first_due_at is None else max(0, now - first_due_at) / 1000


def put(tx: Tx, *wanted: Timer) -> None:
    """Set timers, each once; the same id replaces the earlier one."""
    if wanted:
        rows = [
            {**TIMERS.params(timer), "agent_id": keys.agent_of(timer.target)} for timer in wanted
        ]
        tx.many(_PUT, rows)
        tx.notify(SET, str(min(timer.due_at for timer in wanted)))


def get(tx: Tx, timer_id: str) -> Timer | None:
    row = tx.one(TIMERS.select("WHERE id = :id"), id=timer_id)
    return None if row is None else TIMERS.read(row)


def get_all(tx: Tx, timer_ids: Sequence[str]) -> list[Timer]:
    """Return those timers that are there."""
    if not timer_ids:
        return []
    return [TIMERS.read(row) for row in tx.all(BY_IDS, ids=list(timer_ids))]


def cancel(tx: Tx, *timer_ids: str) -> None:
    """Drop timers, those that are there."""
    if timer_ids:
        tx.run("DELETE FROM timers WHERE id IN :ids", ids=list(timer_ids))


def forget(tx: Tx, session_key: str) -> None:
    """Drop what is still to come for a session; what is its agent's or a job's stays."""
    tx.run(
        "DELETE FROM timers WHERE target = :target AND owner_kind = 'session'", target=session_key
    )


def take(tx: Tx, timers: Collection[Timer]) -> dict[str, Timer]:
    """Claim timers by removing them; return them by id, without those fired or moved meanwhile.

    They are as they were when they were removed: one may have been set again for the same instant.
    """
    rows = tx.all(
        "DELETE FROM timers WHERE id IN :ids AND id || ' ' || CAST(due_at AS TEXT) IN :instants "  # noqa: S608
        f"RETURNING {TIMERS.columns}",
        ids=[timer.id for timer in timers],
        instants=[f"{timer.id} {timer.due_at}" for timer in timers],
    )
    return {timer.id: timer for timer in map(TIMERS.read, rows)}


def postpone(tx: Tx, timer: Timer, retry_at: int) -> bool:
    """Note that a timer failed and when it is tried again; False if it was moved meanwhile."""
    return bool(
        tx.run(
            "UPDATE timers SET failures = failures + 1, retry_at = :retry_at "
            "WHERE id = :id AND due_at = :due_at",
            id=timer.id,
            due_at=timer.due_at,
            retry_at=retry_at,
        )
    )
