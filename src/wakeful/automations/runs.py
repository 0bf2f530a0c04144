"""Run rows: one per occurrence that was due, whatever came of it.

While a run is open its state is computed from its stimulus and its turn; its end is written once,
by whatever ends the stimulus.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from wakeful.bus.bus import Bus
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.automation import AutomationRun, RunCause

RUNS = RowTable("automation_runs", AutomationRun)

_INSERT = f"{RUNS.insert} ON CONFLICT (id) DO NOTHING"


def add(tx: Tx, wanted: Sequence[AutomationRun]) -> None:
    """Keep runs; each occurrence has one row, ever."""
    tx.many(_INSERT, [RUNS.params(run) for run in wanted])


def known(tx: Tx, run_ids: Collection[str]) -> set[str]:
    """Return which of these runs are there."""
    if not run_ids:
        return set()
    rows = tx.all("SELECT id FROM automation_runs WHERE id IN :ids", ids=list(run_ids))
    return {row[0] for row in rows}


def get(tx: Tx, run_id: str) -> AutomationRun | None:
    row = tx.one(RUNS.select("WHERE id = :id"), id=run_id)
    return None if row is None else RUNS.read(row)


def of_stimuli(tx: Tx, stimulus_ids: Collection[str]) -> dict[str, AutomationRun]:
    """Return the runs that stimuli stand for, by the stimulus."""
    if not stimulus_ids:
        return {}
    rows = tx.all(RUNS.select("WHERE stimulus_id IN :ids"), ids=list(stimulus_ids))
    runs = map(RUNS.read, rows)
    return {run.stimulus_id: run for run in runs if run.stimulus_id is not None}


def of_turn(tx: Tx, turn_id: str) -> AutomationRun | None:
    """Return the run that a turn is about, if it is about one."""
    row = tx.one(RUNS.select("WHERE turn_id = :turn_id ORDER BY id LIMIT 1"), turn_id=turn_id)
    return None if row is None else RUNS.read(row)


def count_open(tx: Tx, job_ids: Collection[str]) -> dict[str, int]:
    """Return how many runs of these jobs wait or run; without those that have none."""
    if not job_ids:
        return {}
    rows = tx.all(
        "SELECT job_id, COUNT(*) FROM automation_runs "
        "WHERE job_id IN :ids AND ended_at IS NULL GROUP BY job_id",
        ids=list(job_ids),
    )
    return {row[0]: row[1] for row in rows}


def waiting_of(tx: Tx, job_id: str) -> list[str]:
    """Return the stimuli of the runs of a job that have not begun."""
    rows = tx.all(
        "SELECT stimuli.id FROM automation_runs JOIN stimuli ON stimuli.id = stimulus_id "
        "WHERE job_id = :job_id AND ended_at IS NULL AND stimuli.state IN ('pending', 'parked')",
        job_id=job_id,
    )
    return [row[0] for row in rows]


def last_catching_up(tx: Tx, agent_ids: Collection[str]) -> dict[str, int]:
    """Return when the last of the runs begins with which agents make up for lost time."""
    if not agent_ids:
        return {}
    rows = tx.all(
        "SELECT agent_id, MAX(starts_at) FROM automation_runs WHERE agent_id IN :ids "
        "AND ended_at IS NULL AND cause = 'catch-up' GROUP BY agent_id",
        ids=list(agent_ids),
    )
    return {row[0]: row[1] for row in rows}


def begin(tx: Tx, run: AutomationRun, turn_id: str, transcript_id: str | None) -> AutomationRun:
    """Keep which turn a run has now, when the first one began, and a transcript of its own."""
    begun = replace(
        run,
        turn_id=turn_id,
        started_at=tx.now if run.started_at is None else run.started_at,
        transcript_id=transcript_id,
    )
    _keep(tx, begun, "turn_id", "started_at", "transcript_id")
    return begun


def note_preempted(tx: Tx, run: AutomationRun, cost: float) -> AutomationRun:
    """Keep that a run was cut off and will be taken up again, and what it cost so far."""
    again = replace(run, attempts=run.attempts + 1, cost=(run.cost or 0.0) + cost)
    _keep(tx, again, "attempts", "cost")
    return again


def note_trace(tx: Tx, run_id: str, traceback: str) -> None:
    """Keep what went wrong inside the runtime."""
    tx.run(
        "UPDATE automation_runs SET traceback = :traceback WHERE id = :id",
        id=run_id,
        traceback=traceback,
    )


def end(tx: Tx, run: AutomationRun) -> bool:
    """Write how a run ended; False if that is written."""
    fields = ("state", "reason", "ended_at", "cost", "error", "turn_id")
    return _keep(tx, run, *fields, where="ended_at IS NULL")


def publish(tx: Tx, bus: Bus, run: AutomationRun, state: str) -> None:
    """Tell those who watch what became of a run."""
    data: dict[str, Any] = {} if run.reason is None else {"reason": run.reason}
    bus.publish(
        tx,
        f"automation.{state}",
        run.session_key,
        turn_id=run.turn_id,
        stimulus_id=run.stimulus_id,
        job_id=run.job_id,
        name=run.job_name,
        run_id=run.id,
        scheduled_at=run.scheduled_at,
        late_ms=run.late_ms,
        **data,
    )


def run_id(job_id: str, scheduled_at: int, cause: RunCause, number: int | str = 0) -> str:
    """Name a run by what it stands for: each occurrence, each further try, each wish by hand."""
    match cause:
        case RunCause.MANUAL:
            return f"{job_id}:manual:{number}"
        case RunCause.RETRY:
            return f"{job_id}:{scheduled_at}:retry:{number}"
        case RunCause.SCHEDULE | RunCause.CATCH_UP:
            return f"{job_id}:{scheduled_at}"


def retries_of(run: AutomationRun) -> int:
    """Return how many times its occurrence had been tried again when this run was filed."""
    _, is_retry, number = run.id.rpartition(":retry:")
    return int(number) if is_retry else 0


def _keep(tx: Tx, run: AutomationRun, *fields: str, where: str = "TRUE") -> bool:
    params = RUNS.params(run)
    changes = ", ".join(f"{name} = :{name}" for name in fields)
    changed = tx.run(
        f"UPDATE automation_runs SET {changes} WHERE id = :id AND {where}",  # noqa: S608 (ours)
        id=run.id,
        **{name: params[name] for name in fields},
    )
    return changed == 1
