"""The end of a run, written once: in the commit that ends its stimulus, with what follows of it."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.automations import jobs, policies, runs
from wakeful.automations.jobs import Retry
from wakeful.broker.settlement import Settled
from wakeful.bus.bus import Bus
from wakeful.intake.filing import File
from wakeful.notices.notices import Notices
from wakeful.outbox.outbox import Delivery
from wakeful.prompts import automation as prompts
from wakeful.prompts.silence import spoken
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.turns import turns
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.automation import (
    Automation,
    AutomationRun,
    DisabledReason,
    PostMode,
    RunCause,
    RunState,
)
from wakeful.vocabulary.kinds import Answer, Kind, Limit
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, State, Stimulus
from wakeful.vocabulary.text import one_line

SUMMARY_CHARACTERS = 200
DAY_MS = 86_400_000

# Asks for a heartbeat of an agent, by whom.
AskForHeartbeat = Callable[[Tx, str, str], object]

_STATES: dict[State, RunState] = {
    State.DONE: RunState.OK,
    State.MERGED: RunState.OK,
    State.FAILED: RunState.ERROR,
    State.CANCELLED: RunState.CANCELLED,
    State.SUPPRESSED: RunState.SKIPPED,
    State.EXPIRED: RunState.EXPIRED,
}


class Finishing:
    """Ends runs, and decides what becomes of their jobs; hooks of what ends stimuli and turns."""

    def __init__(
        self, bus: Bus, notices: Notices, file: File, ask_for_heartbeat: AskForHeartbeat
    ) -> None:
        self._bus = bus
        self._notices = notices
        self._file = file
        self._ask_for_heartbeat = ask_for_heartbeat

    def on_settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """End the runs whose stimuli have come to their end, whatever ended those."""
        ended = {one.id: one for one in settled if one.kind and one.kind.rule.is_scheduled}
        for stimulus_id, run in runs.of_stimuli(tx, ended).items():
            if run.ended_at is None:
                self._end(tx, run, ended[stimulus_id])

    def on_ended(self, tx: Tx, turn: Turn, how: End) -> None:
        """Keep that a run was cut off and will be taken up again, and what went wrong inside."""
        if not _is_of_a_job(turn):
            return
        run = runs.of_turn(tx, turn.id)
        if run is not None and how.state is TurnState.PREEMPTED:
            again = runs.note_preempted(tx, run, turn.cost)
            runs.publish(tx, self._bus, again, RunState.DEFERRED)
        elif run is not None and how.error is not None:
            runs.note_failure(tx, run.id, how.detail or how.error, how.trace)

    def reports_to(self, tx: Tx, stimulus: Stimulus) -> str | None:
        """Return the session that hears of the end of a turn, so that its lane is locked."""
        if stimulus.kind.rule.answer is not Answer.POST:
            return None
        run = runs.of_stimuli(tx, [stimulus.id]).get(stimulus.id)
        return None if run is None or _is_kept_to_itself(run) else keys.main(run.agent_id)

    def on_undelivered(self, tx: Tx, delivery: Delivery) -> None:
        """Tell people, once a day, that the answers of a run do not arrive where they should."""
        turn = None if delivery.turn_id is None else turns.get_partly(tx, delivery.turn_id)
        if turn is None or not _is_of_a_job(turn) or turn.kind.rule.answer is not Answer.POST:
            return
        run = runs.of_turn(tx, turn.id)
        if run is None or run.answer.best_effort or turn.route != delivery.route:
            return
        text = (
            f'The answer of the automation "{run.job_name}" could not be delivered to '
            f"{delivery.route.door}: `wakeful cron why {run.id}` has it."
        )
        subject = f"{run.job_id} undelivered"
        self._notices.add_once_in(tx, DAY_MS, "automation", subject, text, run.agent_id)

    def _end(self, tx: Tx, run: AutomationRun, settled: Settled) -> None:
        turn = None if settled.turn_id is None else turns.get_partly(tx, settled.turn_id)
        state = _STATES[settled.state]
        # One that was cut off has left its cost with the run, which may end before it goes on.
        is_its_own = turn is not None and _is_of_a_job(turn) and not _was_cut(turn)
        run = replace(
            run,
            state=state,
            reason=_reason(state, settled, turn),
            ended_at=tx.now,
            turn_id=settled.turn_id,
            cost=(run.cost or 0.0) + turn.cost if turn is not None and is_its_own else run.cost,
        )
        runs.end(tx, run)
        runs.publish(tx, self._bus, run, state.value)
        if turn is not None:
            self._post(tx, run, turn)
        job = jobs.get(tx, run.job_id)
        if job is not None:
            self._follow(tx, job, run, may_pass=turn is not None and turn.may_pass)

    def _post(self, tx: Tx, run: AutomationRun, turn: Turn) -> None:
        """Tell an agent's main session what came of a run in a session of its own."""
        said = _said(run, turn)
        to = run.answer.post_to_main
        if not _is_of_a_job(turn) or turn.kind.rule.answer is not Answer.POST:
            return
        if not said or to is None:
            return
        if _is_kept_to_itself(run):
            return
        is_brief = to.mode is PostMode.SUMMARY
        text = one_line(said, SUMMARY_CHARACTERS) if is_brief else said[: to.max_chars]
        draft = Draft(
            session_key=keys.main(run.agent_id),
            text=f"{to.prefix or run.job_name}: {text}",
            kind=Kind.POST,
            priority=Priority.LATER,
            trust=turn.trust,
            owner=OPERATOR,
            source=turn.source,
            cause_id=turn.id,
            root_id=turn.root_id,
            depth=turn.depth + 1,
        )
        self._file(tx, [draft])
        if run.answer.wakes:
            self._ask_for_heartbeat(tx, run.agent_id, turn.source)

    def _follow(self, tx: Tx, job: Automation, run: AutomationRun, *, may_pass: bool) -> None:
        """Bring a job in line with how one of its runs has ended."""
        if run.state is RunState.OK and job.delete_after_run and job.next_run_at is None:
            self._remove(tx, job)
            return
        job = replace(job, **_last(run))
        if run.state is RunState.OK:
            job = replace(job, failures_in_a_row=0)
        elif run.state is RunState.ERROR and run.cause is not RunCause.MANUAL:
            job = self._failed(tx, job, run, may_pass=may_pass)
        if job.enabled:
            jobs.note_running(tx, job)
        else:
            jobs.put(tx, job)  # it may have been given up
        finish_if_over(tx, self._bus, job)

    def _failed(self, tx: Tx, job: Automation, run: AutomationRun, *, may_pass: bool) -> Automation:
        """Count a failed occurrence; try it again, or give the job up after too many of them."""
        if run.cause is not RunCause.RETRY:
            job = replace(job, failures_in_a_row=job.failures_in_a_row + 1)
        if not job.enabled or run.revision != job.revision:
            return job
        if policies.is_disabled_by(job.failures_in_a_row):
            return self._give_up(tx, job)
        number = runs.retries_of(run) + 1
        again_at = policies.retry_at(number, tx.now, job.next_run_at) if may_pass else None
        if again_at is not None:
            jobs.set_retry(tx, job, Retry(scheduled_at=run.scheduled_at, number=number), again_at)
        return job

    def _give_up(self, tx: Tx, job: Automation) -> Automation:
        times = job.failures_in_a_row
        text = (
            f'The automation "{job.name}" failed {times} times in a row and is switched off: '
            f"`wakeful cron runs {job.id}` tells why, `wakeful cron resume {job.id}` goes on."
        )
        self._notices.add(
            tx,
            "automation",
            job.id,
            f"failures {tx.now}",
            text,
            job.agent_id,
            session_key=job.session_key,
        )
        return disabled(tx, self._bus, job, DisabledReason.FAILURES)

    def _remove(self, tx: Tx, job: Automation) -> None:
        jobs.remove(tx, [job.id])
        publish(tx, self._bus, job, "removed", "finished")


def finish_if_over(tx: Tx, bus: Bus, job: Automation) -> None:
    """Note that a job will never be due again, once nothing of it waits or runs."""
    if not job.enabled or job.next_run_at is not None or runs.count_open(tx, [job.id]):
        return
    if timers.get(tx, jobs.retry_id(job.id)) is None:
        jobs.put(tx, disabled(tx, bus, job, DisabledReason.FINISHED))


def disabled(tx: Tx, bus: Bus, job: Automation, reason: DisabledReason) -> Automation:
    """Return a job that is switched off; nothing of it is due any more."""
    off = replace(job, enabled=False, disabled_reason=reason, next_run_at=None, updated_at=tx.now)
    timers.cancel(tx, jobs.timer_id(job.id), jobs.retry_id(job.id))
    publish(tx, bus, off, "disabled", reason.value)
    return off


def publish(tx: Tx, bus: Bus, job: Automation, what: str, reason: str | None = None) -> None:
    """Tell those who watch what became of a job."""
    more = {} if reason is None else {"reason": reason}
    bus.publish(tx, f"automation.{what}", job.session_key, job_id=job.id, name=job.name, **more)


def _reason(state: RunState, settled: Settled, turn: Turn | None) -> str | None:
    if state is not RunState.ERROR:
        return settled.reason
    if turn is None:
        return prompts.INTERNAL
    is_out_of_time = turn.state is TurnState.TIMED_OUT
    return prompts.why_failed(turn.error_kind, is_out_of_time=is_out_of_time)


def _is_of_a_job(turn: Turn) -> bool:
    """Tell whether a turn was opened for a run; whose kind cannot be read was opened for none."""
    return bool(turn.kind) and turn.kind.rule.limit is Limit.JOB


def _said(run: AutomationRun, turn: Turn) -> str:
    """Return what people should hear of the end of a run; empty: nothing."""
    match run.state:
        case RunState.OK:
            said = spoken(turn.reply or "")
            return "" if said.is_silent else said.text
        case RunState.ERROR:
            return prompts.failed(run.job_name, run.reason or "internal")
        case _:
            return ""


def _was_cut(turn: Turn) -> bool:
    return turn.state is TurnState.PREEMPTED


def _is_kept_to_itself(run: AutomationRun) -> bool:
    to = run.answer.post_to_main
    return to is None or to.mode is PostMode.NONE


def _last(run: AutomationRun) -> dict[str, object]:
    """Return what a job tells of its last run; one of which no turn came is not it."""
    if run.started_at is None and run.turn_id is None:
        return {}
    began = run.started_at or run.filed_at
    return {
        "last_run_id": run.id,
        "last_run_at": began,
        "last_status": run.state,
        "last_error": run.reason if run.state is RunState.ERROR else None,
        "last_duration_ms": max(0, (run.ended_at or began) - began),
    }
