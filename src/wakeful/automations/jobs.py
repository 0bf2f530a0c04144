"""Automation rows: one per job, and what is due next of it."""

from collections.abc import Collection, Sequence

import msgspec

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.vocabulary.automation import Automation, Schedule
from wakeful.vocabulary.record import Record

TIMER_KIND = "automation"

JOBS = RowTable("automations", Automation)

_PUT = (
    JOBS.insert
    + " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in JOBS.fields if name != "id")
)


# What changes of a job as it runs; by none of it, it is found.
_RUNNING = (
    "next_run_at",
    "last_run_id",
    "last_run_at",
    "last_status",
    "last_error",
    "last_duration_ms",
    "failures_in_a_row",
)
_NOTE = (
    f"UPDATE automations SET {', '.join(f'{name} = :{name}' for name in _RUNNING)} "  # noqa: S608 (constants of ours)
    "WHERE id = :id"
)


# Versions of the zone data that next occurrences were found with; and those jobs, by page.
ZONE_DATA = "SELECT DISTINCT zone_data FROM automations WHERE enabled = 1 AND zone_data IS NOT NULL"
OF_ZONES = JOBS.select(
    "WHERE enabled = 1 AND zone_data IS NOT NULL AND id > :after ORDER BY id LIMIT :limit"
)


class Retry(Record):
    """Another try at a run that failed for what may pass."""

    scheduled_at: int
    number: int


class Pending(Record):
    """What the timer of a job carries: enough to know what was due, before anything is read."""

    job_id: str
    revision: int
    schedule: Schedule
    retry: Retry | None = None


def put(tx: Tx, *wanted: Automation) -> None:
    """Keep automations, each in the place of what was known of it."""
    tx.many(_PUT, [JOBS.params(job) for job in wanted])


def note_running(tx: Tx, *changed: Automation) -> None:
    """Keep when jobs are due next and what came of their last runs; nothing else has changed."""
    all_params = [JOBS.params(job) for job in changed]
    tx.many(_NOTE, [{name: given[name] for name in ("id", *_RUNNING)} for given in all_params])


def get(tx: Tx, job_id: str) -> Automation | None:
    return get_all(tx, [job_id]).get(job_id)


def get_all(tx: Tx, job_ids: Collection[str]) -> dict[str, Automation]:
    """Return those automations that are there, by id."""
    if not job_ids:
        return {}
    rows = tx.all(JOBS.select("WHERE id IN :ids"), ids=list(job_ids))
    return {job.id: job for job in map(JOBS.read, rows)}


def bound_to(tx: Tx, session_key: str) -> list[Automation]:
    """Return the automations of people that run in a session."""
    rows = tx.all(
        JOBS.select("WHERE session_key = :key AND category = 'bound' ORDER BY id"),
        key=session_key,
    )
    return [JOBS.read(row) for row in rows]


def count_of_session(tx: Tx, session_key: str, *, but: str = "") -> int:
    """Return how many automations run in a session, one of them apart."""
    row = tx.one(
        "SELECT COUNT(*) FROM automations WHERE session_key = :key AND id <> :but",
        key=session_key,
        but=but,
    )
    assert row is not None
    return row[0]


def named(tx: Tx, agent_id: str, name: str) -> list[str]:
    """Return the ids of an agent's enabled automations of this name."""
    rows = tx.all(
        "SELECT id FROM automations WHERE agent_id = :agent_id AND name = :name AND enabled = 1",
        agent_id=agent_id,
        name=name,
    )
    return [row[0] for row in rows]


def is_imported(tx: Tx, agent_id: str, their_id: str) -> bool:
    """Tell whether a job of another program was taken over before."""
    return (
        tx.one(
            "SELECT 1 FROM automations WHERE agent_id = :agent_id AND imported_from = :id",
            agent_id=agent_id,
            id=their_id,
        )
        is not None
    )


def remove(tx: Tx, job_ids: Sequence[str]) -> None:
    """Forget automations and what was due of them; their runs stay until they are old."""
    tx.run("DELETE FROM automations WHERE id IN :ids", ids=list(job_ids))
    timers.cancel(tx, *map(timer_id, job_ids), *map(retry_id, job_ids))


def set_timers(tx: Tx, *wanted: Automation) -> None:
    """Set, move or drop the timers of the next occurrences."""
    due = [job for job in wanted if job.enabled and job.next_run_at is not None]
    timers.put(tx, *map(_timer, due))
    idle = [timer_id(job.id) for job in wanted if not job.enabled or job.next_run_at is None]
    timers.cancel(tx, *idle)


def set_retry(tx: Tx, job: Automation, retry: Retry, due_at: int) -> None:
    """Have a run tried again."""
    pending = Pending(job_id=job.id, revision=job.revision, schedule=job.schedule, retry=retry)
    timers.put(tx, _made(retry_id(job.id), job, pending, due_at))


def drop_retry(tx: Tx, job_id: str) -> None:
    timers.cancel(tx, retry_id(job_id))


def timer_id(job_id: str) -> str:
    return f"{TIMER_KIND} {job_id}"


def retry_id(job_id: str) -> str:
    return f"{TIMER_KIND}-retry {job_id}"


pending = msgspec.json.Decoder(Pending)


def _timer(job: Automation) -> Timer:
    assert job.next_run_at is not None
    carried = Pending(job_id=job.id, revision=job.revision, schedule=job.schedule)
    return _made(timer_id(job.id), job, carried, job.next_run_at)


def _made(name: str, job: Automation, carried: Pending, due_at: int) -> Timer:
    return Timer(
        id=name,
        due_at=due_at,
        kind=TIMER_KIND,
        target=job.session_key,
        payload=msgspec.json.encode(carried).decode(),
        owner_kind="job",
    )
