"""I12 runs of automations."""

from datetime import datetime
from typing import Any

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History, grouped
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.automation import AutomationRun, RunCause, RunState
from wakeful.vocabulary.kinds import Limit
from wakeful.vocabulary.stimulus import TERMINAL, State, Stimulus

SOURCE = "cron:"  # of every stimulus that stands for a run
TIMER = "automation "  # then the id of a job: the timer of its next occurrence

# What a run is whose stimulus has ended so.
_ENDS: dict[State, RunState] = {
    State.DONE: RunState.OK,
    State.MERGED: RunState.OK,
    State.FAILED: RunState.ERROR,
    State.CANCELLED: RunState.CANCELLED,
    State.SUPPRESSED: RunState.SKIPPED,
    State.EXPIRED: RunState.EXPIRED,
}


def runs_are_filed_once(history: History, finding: InvariantFinding) -> None:
    """Look at each run, each stimulus of one, and each occurrence that came."""
    runs = history.db.runs
    of_stimuli = grouped(runs.values(), lambda run: run.stimulus_id)
    turns = grouped(history.db.turns.values(), lambda turn: turn.opened_by)
    for instant, filed in grouped(runs.values(), _instant).items():
        finding.expect(len(filed) == 1, f"{instant} has {len(filed)} runs", map(str, filed))
    for run in runs.values():
        _check_run(history, run, turns[run.stimulus_id or ""], finding)
    for stimulus in history.db.stimuli.values():
        if stimulus.source.startswith(SOURCE) and stimulus.kind.rule.is_scheduled:
            found = of_stimuli[stimulus.id]
            finding.expect(
                len(found) == 1, f"{stimulus.id} has {len(found)} runs", history.story(stimulus.id)
            )
    schedules = _schedules(history)
    by_job = grouped(runs.values(), lambda run: run.job_id)
    for event in history.db.events:
        if event.kind == "timer.fired" and str(event.data["timer_id"]).startswith(TIMER):
            job_id = str(event.data["timer_id"]).removeprefix(TIMER)
            _check_firing(event, by_job[job_id], schedules.get(job_id), finding)
    _check_kept(history, finding)


def _instant(run: AutomationRun) -> tuple[object, ...]:
    """Name what a run stands for: nothing else may stand for it."""
    if run.cause is RunCause.MANUAL:
        return (run.job_id, run.id)
    number = run.id.rpartition(":retry:")[2] if run.cause is RunCause.RETRY else ""
    return (run.job_id, run.scheduled_at, number)


def _check_run(
    history: History, run: AutomationRun, turns: list[Turn], finding: InvariantFinding
) -> None:
    finding.expect(
        run.filed_at >= run.scheduled_at, f"{run.id} was filed at {run.filed_at}: too early"
    )
    stimulus = history.db.stimuli.get(run.stimulus_id or "")
    problem = _without(run) if run.stimulus_id is None else _beside(run, stimulus)
    finding.expect(problem is None, f"{run.id} {problem}", history.story(run.stimulus_id))
    done = [
        turn.id
        for turn in turns
        if turn.kind.rule.limit is Limit.JOB and turn.state is not TurnState.PREEMPTED
    ]
    finding.expect(len(done) <= 1, f"{run.id} had the turns {done!r}")


def _without(run: AutomationRun) -> str | None:
    """Say what is wrong with a run of which nothing came: it says why, at once."""
    if run.ended_at != run.filed_at:
        return "has no stimulus and did not end at once"
    if run.state is RunState.MISSED:
        return None if run.count >= 1 else "stands for nothing"
    says_why = run.state in (RunState.SKIPPED, RunState.ERROR) and run.reason is not None
    return None if says_why else f"is {run.state} without a stimulus or a reason"


def _beside(run: AutomationRun, stimulus: Stimulus | None) -> str | None:
    """Say what is wrong with a run beside what it stands for."""
    if stimulus is None:
        return "stands for a stimulus that is not there"
    if stimulus.accepted_at != run.filed_at:
        return "was not filed in the commit of its stimulus"
    if run.ended_at is None:
        return "is open, and its stimulus has ended" if stimulus.state in TERMINAL else None
    if stimulus.state not in TERMINAL:
        return f"is {run.state}, and its stimulus is {stimulus.state}"
    if (run.state, run.ended_at) != (_ENDS[stimulus.state], stimulus.settled_at):
        return f"is {run.state}, and its stimulus {stimulus.state} at {stimulus.settled_at}"
    if stimulus.turn_id is not None and run.turn_id != stimulus.turn_id:
        return f"has the turn {run.turn_id}, and its stimulus {stimulus.turn_id}"
    return None


def _schedules(history: History) -> dict[str, dict[str, Any]]:
    """Return the schedules of jobs, as whoever made those was answered."""
    return {
        line["ok"]["id"]: line["ok"]["schedule"]
        for line in history.ledgers.client
        if line["do"] == "schedule" and line["what"] == "answer" and "ok" in line
    }


def _check_firing(
    event: EventRow,
    runs: list[AutomationRun],
    schedule: dict[str, Any] | None,
    finding: InvariantFinding,
) -> None:
    """Each instant that had come is told of, in the commit of the timer that was due."""
    due_at, at = int(event.data["due_at"]), event.at
    filed = [
        run
        for run in runs
        if run.filed_at == at and run.cause in (RunCause.SCHEDULE, RunCause.CATCH_UP)
    ]
    finding.expect(
        bool(filed) and min(run.scheduled_at for run in filed) >= due_at,
        f"{event.data['timer_id']} fired at {at}, due at {due_at}, and no run says so",
        map(str, filed),
    )
    if schedule is None or schedule["kind"] != "every":
        return
    step, anchor = schedule["every_s"] * 1_000, _ms(schedule["anchor"])
    covered, most = sum(run.count for run in filed), (at - due_at) // step + 1
    finding.expect(
        covered == most,
        f"{event.data['timer_id']}: {covered} of {most} instants from {due_at} to {at} have a run",
        map(str, filed),
    )
    finding.expect(
        all((run.scheduled_at - anchor) % step == 0 for run in filed),
        f"{event.data['timer_id']} fired beside its schedule",
        map(str, filed),
    )


def _check_kept(history: History, finding: InvariantFinding) -> None:
    """What was made is there, unless somebody removed it or it ran once and went."""
    taken = {line["job"] for line in history.ledgers.client if line["do"] == "job"}
    deleted = any(line["do"] == "delete" for line in history.ledgers.client)
    for job_id in _schedules(history):
        finding.expect(job_id in history.db.jobs or job_id in taken or deleted, f"{job_id} is gone")


def _ms(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1_000)
