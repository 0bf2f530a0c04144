"""Due automations: one row and one stimulus for each occurrence, in the commit that fires it.

Firing sets the next timer, whatever becomes of the occurrence; nothing here waits for a turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from msgspec.structs import replace

from wakeful.access import rules as access
from wakeful.automations import finishing, jobs, policies, runs, schedules, zones
from wakeful.automations.policies import Start
from wakeful.broker import lane_rows
from wakeful.bus.bus import Bus
from wakeful.intake.filing import File
from wakeful.notices.notices import Notices
from wakeful.prompts import automation as prompts
from wakeful.store.database import Store, Tx
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import Timer
from wakeful.transcript import sessions
from wakeful.transcript.sessions import NOTHING_CHOSEN, Session
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.automation import (
    AgentTurn,
    Automation,
    AutomationRun,
    Category,
    CronSchedule,
    Overlap,
    RunAnswer,
    RunCause,
    RunState,
    SystemEvent,
    WakeMode,
)
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Joins, Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Draft, Outcome, Priority, Receipt, Trust

RECONCILED_AT_ONCE = 500
MOST_QUEUED = 10  # runs of one job that wait for each other
NO_AGENT = "no-agent"
NOT_ITS_OWN = "session-deleted"  # what has its name now is somebody else's
_ERRORS = frozenset({NO_AGENT})
# What is told of a run whose stimulus cannot open a turn at once; its row says nothing of that.
_WAITING = {Outcome.QUEUED: RunState.DEFERRED, Outcome.PARKED: RunState.PARKED}

# Files what an agent should hear of with its next heartbeat, or at once.
FileEvent = Callable[[Tx, Draft, bool], Receipt]


class Foreseen(Record):
    """What was found about a timer before the transaction in which it fires."""

    revision: int  # of the schedule that it was found by
    next_at: int | None = None  # when its job is due again


@dataclass
class Plans:
    """The runs that one transaction is about to file."""

    open: dict[str, int]  # runs of a job that wait or run
    catching_up: dict[str, int]  # when the last one of an agent begins
    planned: list[tuple[AutomationRun, Draft | None]] = field(
        default_factory=list[tuple[AutomationRun, "Draft | None"]]
    )


class Scheduling:
    """Fires the timers of automations; the caller holds the locks of their lanes."""

    # Each is a room of its own.
    def __init__(
        self,
        agents: Agents,
        bus: Bus,
        ids: Ids,
        clock: Clock,
        notices: Notices,
        file: File,
        file_event: FileEvent,
    ) -> None:
        self.agents = agents
        self.bus = bus
        self.ids = ids
        self.clock = clock
        self._notices = notices
        self._file = file
        self._file_event = file_event
        self.zone: tzinfo | None = None  # the user's; None: the machine's

    def follow(self, zone: tzinfo | None) -> None:
        """Tell agents the time of this zone from now on, where a job has none of its own."""
        self.zone = zone

    async def reconcile(self, store: Store, _agent_ids: Sequence[str]) -> None:
        """Find anew when jobs are due, where clocks are moved otherwise than they were known to be.

        A process with older data than those leaves them alone.
        """
        versions = {row[0] for row in await store.read(jobs.ZONE_DATA)}
        after = "" if versions - {zones.data_version("UTC")} else None
        while after is not None:
            rows = await store.read(jobs.OF_ZONES, after=after, limit=RECONCILED_AT_ONCE)
            found = [jobs.JOBS.read(row) for row in rows]
            for job in filter(_may_be_wrong, found):
                await store.transact(
                    lambda tx, job_id=job.id: self._find_anew(tx, job_id),
                    locks=[lane_rows.lock(job.session_key)],
                )
            after = found[-1].id if found else None

    def _find_anew(self, tx: Tx, job_id: str) -> None:
        job = jobs.get(tx, job_id)
        if job is None or not _may_be_wrong(job) or (job.next_run_at or 0) <= tx.now:
            return  # it was changed, or is due: what is due fires
        found = replace(
            job,
            next_run_at=schedules.next_after(job.schedule, tx.now),
            zone_data=schedules.zone_data_version(job.schedule),
        )
        jobs.put(tx, found)
        jobs.set_timers(tx, found)

    def prepare(self, timer: Timer) -> Foreseen:
        """Find when a job is due next; the data of its zone may have to be read."""
        pending = jobs.pending.decode(timer.payload)
        now = max(self.clock.now(), timer.due_at)
        is_retry = pending.retry is not None
        next_at = None if is_retry else schedules.next_after(pending.schedule, now)
        return Foreseen(revision=pending.revision, next_at=next_at)

    def fire(self, tx: Tx, dues: Sequence[Due[Foreseen]]) -> None:
        """Set the next timers, and file what is due now."""
        carried = [(jobs.pending.decode(due.timer.payload), due) for due in dues]
        known = jobs.get_all(tx, {pending.job_id for pending, _ in carried})
        page = self._page(tx, list(known.values()))
        for pending, due in carried:
            job = known.get(pending.job_id)
            if job is None or job.revision != pending.revision:
                continue  # it was changed meanwhile: that occurrence is void
            if pending.retry is not None:
                at = pending.retry.scheduled_at
                self._plan(tx, page, job, _at_once(at, RunCause.RETRY), pending.retry.number)
            elif job.enabled:
                now = max(tx.now, due.timer.due_at)
                known[job.id] = advanced = replace(job, next_run_at=_next_of(job, due.fact, now))
                jobs.put(tx, advanced)
                jobs.set_timers(tx, advanced)
                self._plan_due(tx, page, advanced, due)
        self._write(tx, page, known)

    def run_now(self, tx: Tx, job: Automation) -> AutomationRun:
        """File a run that somebody wants now; the schedule stays as it is."""
        page = self._page(tx, [job])
        self._plan(tx, page, job, _at_once(tx.now, RunCause.MANUAL), self.ids.new("mr"))
        (run,) = self._write(tx, page, {job.id: job})
        return run

    def _page(self, tx: Tx, found: Sequence[Automation]) -> Plans:
        return Plans(
            open=runs.count_open(tx, [job.id for job in found]),
            catching_up=runs.last_catching_up(tx, {job.agent_id for job in found}),
        )

    def _plan_due(self, tx: Tx, page: Plans, job: Automation, due: Due[Foreseen]) -> None:
        """Plan what comes of an occurrence and of all after it, by how late they are."""
        last = page.catching_up.get(job.agent_id)
        found = policies.fallen_due(
            job.schedule,
            job.missed,
            due.timer.due_at,
            max(tx.now, due.timer.due_at),
            0 if last is None else last + policies.CATCH_UP_SPACING_MS,
        )
        if found.newest_missed is not None:
            run = self._run(tx, job, _at_once(found.newest_missed, RunCause.SCHEDULE), 0)
            missed = replace(run, state=RunState.MISSED, ended_at=tx.now, count=found.missed)
            page.planned.append((missed, None))
        for start in found.starts:
            self._plan(tx, page, job, start, 0)

    def _plan(self, tx: Tx, page: Plans, job: Automation, start: Start, number: int | str) -> None:
        """Plan one run, or the row that says why there is none."""
        run = self._run(tx, job, start, number)
        reason = self._why_not(page, tx, job, start.cause)
        if reason is not None:
            state = RunState.ERROR if reason in _ERRORS else RunState.SKIPPED
            page.planned.append((replace(run, state=state, reason=reason, ended_at=tx.now), None))
            return
        if start.cause is RunCause.CATCH_UP:
            page.catching_up[job.agent_id] = run.starts_at
        page.open[job.id] = page.open.get(job.id, 0) + 1
        page.planned.append(self._drafted(tx, job, run))

    def _why_not(self, page: Plans, tx: Tx, job: Automation, cause: RunCause) -> str | None:
        """Return why nothing comes of an occurrence, or None."""
        if self.agents.find(job.agent_id) is None:
            text = f'The automation "{job.name}" is due, and there is no agent {job.agent_id!r}.'
            self._notices.add(tx, "automation", job.id, NO_AGENT, text, job.agent_id)
            return NO_AGENT
        session = sessions.policies(tx, [job.session_key]).get(job.session_key)
        if session is not None and not access.may_write(job.owner, session.owner):
            return NOT_ITS_OWN
        waiting = page.open.get(job.id, 0)
        if cause is RunCause.CATCH_UP:  # those follow each other, and one that was cut off
            waiting = 0 if job.missed == "all" else waiting
        if not waiting:
            return None
        if job.overlap is Overlap.SKIP:
            return "overlap"
        return "queue-full" if waiting >= MOST_QUEUED else None

    def _run(self, tx: Tx, job: Automation, start: Start, number: int | str) -> AutomationRun:
        scheduled_at, cause = start.scheduled_at, start.cause
        return AutomationRun(
            id=runs.run_id(job.id, scheduled_at, cause, number),
            job_id=job.id,
            job_name=job.name,
            agent_id=job.agent_id,
            session_key=job.session_key,
            cause=cause,
            scheduled_at=scheduled_at,
            filed_at=tx.now,
            starts_at=max(tx.now, start.not_before),
            late_ms=max(0, tx.now - scheduled_at),
            revision=job.revision,
            timeout_s=job.timeout_s,
            answer=RunAnswer(
                post_to_main=job.post_to_main,
                best_effort=job.best_effort,
                wakes=job.wake is WakeMode.NOW,
            ),
        )

    def _drafted(self, tx: Tx, job: Automation, run: AutomationRun) -> tuple[AutomationRun, Draft]:
        """Return a run with its prompt, and the stimulus that it is."""
        draft = Draft(
            session_key=job.session_key,
            kind=Kind.ISOLATED_AUTOMATION if job.is_isolated else Kind.AUTOMATION,
            priority=Priority.LATER,
            trust=job.trust,
            owner=job.owner,
            source=source_of(job.name),
            cause_id=job.cause_id,
            not_before=run.starts_at if run.starts_at > tx.now else None,
            ignores_quiet_hours=job.by_person
            and job.category is Category.BOUND
            and not job.respect_quiet_hours,
        )
        match job.payload:
            case SystemEvent():
                return run, replace(draft, kind=Kind.SYSTEM_EVENT, text=job.payload.text)
            case AgentTurn():
                return self._asked(tx, job, job.payload, run, draft)

    def _asked(
        self, tx: Tx, job: Automation, payload: AgentTurn, run: AutomationRun, draft: Draft
    ) -> tuple[AutomationRun, Draft]:
        zone = _zone_of(job) or self.zone
        is_external = job.trust is Trust.EXTERNAL
        prompt = prompts.rendered(run, payload.message, zone, is_external=is_external)
        model, thinking = payload.model, payload.thinking
        if job.is_isolated:
            chosen = _chosen_in_main(tx, job.agent_id)
            model, thinking = model or chosen.model, thinking or chosen.thinking
            draft = replace(draft, begins="automation", route=job.deliver_to)
        run = replace(
            run,
            model=model,
            thinking=thinking,
            prompt_ref=prompt.ref,
            prompt_variables=prompt.variables,
            rendered_prompt=prompt.text,
        )
        return run, replace(draft, text=payload.message)

    def _write(self, tx: Tx, page: Plans, known: Mapping[str, Automation]) -> list[AutomationRun]:
        """File what was planned; each occurrence at most once, ever."""
        there = runs.known(tx, [run.id for run, _ in page.planned])
        planned = [(run, draft) for run, draft in page.planned if run.id not in there]
        asked = [draft for _, draft in planned if draft is not None and not _is_event(draft)]
        receipts = iter(self._file(tx, asked))
        written: list[AutomationRun] = []
        states: list[RunState] = []
        for run, draft in planned:
            state = run.state
            if draft is not None:
                receipt = self._tell(tx, run, draft) if _is_event(draft) else next(receipts)
                run = _filed(run, receipt, tx.now)
                state = _WAITING.get(receipt.outcome, run.state)
            written.append(run)
            states.append(state)
        runs.add(tx, written)
        for run, state in zip(written, states, strict=True):
            runs.publish(tx, self.bus, run, state.value)
        for job_id in dict.fromkeys(run.job_id for run in written):
            finishing.finish_if_over(tx, self.bus, known[job_id])
        return written

    def _tell(self, tx: Tx, run: AutomationRun, draft: Draft) -> Receipt:
        return self._file_event(tx, draft, run.answer.wakes)


def source_of(name: str) -> str:
    """Return what the stimuli of an automation give as their source."""
    return f"cron:{name}"


def _next_of(job: Automation, fact: Foreseen, now: int) -> int | None:
    """Return when a job is due after now, also if that was looked up a while ago.

    Its schedule may have changed since, and the commit may have waited: then it is found anew, by
    what is known of its zone already.
    """
    is_it = fact.revision == job.revision and (fact.next_at is None or fact.next_at > now)
    return fact.next_at if is_it else schedules.next_after(job.schedule, now)


def _at_once(scheduled_at: int, cause: RunCause) -> Start:
    return Start(scheduled_at=scheduled_at, not_before=0, cause=cause)


def _is_event(draft: Draft) -> bool:
    """Tell whether a heartbeat may take a draft along."""
    return draft.kind.rule.joins is Joins.HEARTBEAT


def _filed(run: AutomationRun, receipt: Receipt, now: int) -> AutomationRun:
    """Return a run with its stimulus; one that was refused at once is over."""
    run = replace(run, stimulus_id=receipt.stimulus_id)
    match receipt.outcome:
        case Outcome.SUPPRESSED:
            return replace(run, state=RunState.SKIPPED, reason=receipt.reason, ended_at=now)
        case _:
            return run


def _zone_of(job: Automation) -> tzinfo | None:
    """Return the zone that a job goes by, if it names one."""
    match job.schedule:
        case CronSchedule(tz=str(tz)):
            return zones.zone_named(tz, "schedule.tz")
        case _:
            return None


def _may_be_wrong(job: Automation) -> bool:
    """Tell whether the next occurrence was found with older data than ours."""
    ours = schedules.zone_data_version(job.schedule)
    return ours != job.zone_data and zones.may_recompute(job.zone_data, ours)


def _chosen_in_main(tx: Tx, agent_id: str) -> sessions.Overrides:
    """Return what somebody chose for an agent's main session."""
    session: Session | None = sessions.get(tx, keys.main(agent_id))
    return NOTHING_CHOSEN if session is None else session.overrides
