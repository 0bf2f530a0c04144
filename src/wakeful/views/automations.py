"""Look at automations and their runs: what is due when, what waits, and what came of it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from wakeful.access import rules
from wakeful.automations import schedules
from wakeful.automations.jobs import JOBS
from wakeful.automations.runs import RUNS
from wakeful.broker.stimuli import listed
from wakeful.outbox.outbox import DeliveryState
from wakeful.prompts.silence import spoken
from wakeful.store.database import Row, Store
from wakeful.transcript.sessions import SESSIONS
from wakeful.turns.turns import TURNS, Turn
from wakeful.views.pages import fitting
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.automation import Automation, AutomationRun, RunState, Schedule
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.kinds import Limit
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import State

NEXT_RUNS = 5  # that are told of each
MOST_QUEUED = 100  # runs told of one session
MOST_NAMED = 10  # automations of one name that are told apart
REMEMBERED = 10_000  # schedules whose next occurrences are kept at hand

_NEWEST = "~"  # after every id
_OWN = f"session_key IN {OWNED}"

# What only one run at a time is asked for: there may be much of it.
_RECORD = ("prompt_variables", "rendered_prompt", "traceback")
_BRIEFLY = ", ".join(f"NULL AS {name}" if name in _RECORD else name for name in RUNS.fields)
_SCHEDULED = listed(lambda rule: rule.is_scheduled)

# A job may have been moved: what it did elsewhere stays with whoever sees that session.
_PAGE_OF_RUNS = (
    f"SELECT {_BRIEFLY} FROM automation_runs WHERE job_id = :job_id "  # noqa: S608 (words of ours)
    "AND (filed_at < :at OR (filed_at = :at AND id < :id)) AND {seen} "
    "ORDER BY filed_at DESC, id DESC LIMIT :limit"
)
# By what waits in the session: its index is small, whatever has run there.
_QUEUED = (
    f"SELECT {', '.join(f'automation_runs.{name}' for name in RUNS.fields)} "  # noqa: S608 (ours)
    "FROM stimuli JOIN automation_runs ON automation_runs.stimulus_id = stimuli.id "
    "WHERE stimuli.session_key = :key AND stimuli.state IN ('pending', 'parked') "
    f"AND stimuli.priority >= 0 AND stimuli.kind IN ({_SCHEDULED}) "
    "AND automation_runs.ended_at IS NULL ORDER BY automation_runs.id LIMIT :limit"
)
_RUNNING = (
    "SELECT automation_runs.job_id, MIN(stimuli.claimed_at) "
    "FROM automation_runs JOIN stimuli ON stimuli.id = automation_runs.stimulus_id "
    "WHERE automation_runs.job_id IN :ids AND automation_runs.ended_at IS NULL "
    "AND stimuli.state = 'claimed' GROUP BY automation_runs.job_id"
)
COUNT_ENABLED = "SELECT COUNT(*) FROM automations WHERE enabled = 1 AND agent_id = :id"


class AutomationState(StrEnum):
    """Whether an automation is due again, and if not, why."""

    ENABLED = "enabled"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILURES = "failures"


class RunDelivery(StrEnum):
    """What became of the message in which people get the answer of a run."""

    NONE = "none"  # there is nothing to be sent: whoever wants it reads it in the session
    WITHHELD = "withheld"  # nothing is sent from its session
    HELD = "held"
    QUEUED = "queued"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    FAILED = "failed"
    EXPIRED = "expired"


# Of several messages, the one that people should know of.
_WORST_FIRST = (
    DeliveryState.FAILED,
    DeliveryState.EXPIRED,
    DeliveryState.UNKNOWN,
    DeliveryState.HELD,
    DeliveryState.QUEUED,
    DeliveryState.SENT,
    DeliveryState.ACKNOWLEDGED,
)


class Ambiguous(InvalidInput):
    """Several things have this name."""

    def __init__(self, named: str, ids: Sequence[str]) -> None:
        super().__init__("id", f"{named[:80]!r} is the name of several: {', '.join(ids)}")
        self.ids = ids


class AutomationFilter(Record):
    """Which automations are wanted; None: any. A session has none of the runtime's own."""

    session_key: str | None = None
    agent_id: str | None = None
    state: AutomationState | None = None


class AutomationStatus(Record):
    """An automation, when it is due next, and since when it runs, if it does."""

    job: Automation
    next_runs: tuple[int, ...] = ()
    running_since: int | None = None


class AutomationPage(Record):
    """A page of automations; `next` is the cursor of the page that follows."""

    items: Sequence[AutomationStatus]
    next: str | None


class RunStatus(Record):
    """A run as it is now: while it is open, what its stimulus and its turn say."""

    run: AutomationRun
    state: RunState
    reason: str | None
    delivery: RunDelivery

    @property
    def place(self) -> str:
        """The cursor after this run."""
        return f"{self.run.filed_at}.{self.run.id}"


class AutomationView:
    """Reads automations; a viewer sees those in the sessions that they see."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def page(
        self, viewer: str, wanted: AutomationFilter, after: str | None, limit: int
    ) -> AutomationPage:
        """Return automations, the newest first; `after` is the `next` of the page before.

        A page may hold less than it could, where what it holds is long.
        """
        conditions, params = _conditions(viewer, wanted)
        # Of whose sessions are few, all are found and put in order; else the order finds them.
        order = "id" if rules.sees_all(viewer) else "id || ''"
        conditions.append(f"{order} < :before")
        sizes = await self._store.read(
            # Of ours alone: no word of a caller is in it.
            "SELECT id, OCTET_LENGTH(payload) FROM automations "  # noqa: S608
            f"WHERE {' AND '.join(conditions)} ORDER BY {order} DESC LIMIT :limit",
            before=_NEWEST if after is None else after,
            limit=limit + 1,
            **params,
        )
        shown = [row[0] for row in sizes[: fitting(row[1] for row in sizes[:limit])]]
        rows = await self._store.read(JOBS.select("WHERE id IN :ids ORDER BY id DESC"), ids=shown)
        return AutomationPage(
            items=await self._statuses(JOBS.read_known(rows)),
            next=shown[-1] if len(sizes) > len(shown) else None,
        )

    async def find(self, named: str, viewer: str, session_key: str | None = None) -> Automation:
        """Return the automation that somebody means by its id or its name.

        Where several have the name, it is that of the session in which it is said, if it is one.
        """
        seen = "TRUE" if rules.sees_all(viewer) else _OWN
        owner = {} if rules.sees_all(viewer) else {"owner": viewer}
        rows = await self._store.read(JOBS.select(f"WHERE id = :id AND {seen}"), id=named, **owner)
        if not rows:
            rows = await self._store.read(
                JOBS.select(f"WHERE name = :name AND {seen} ORDER BY id LIMIT :limit"),
                name=named.strip(),
                limit=MOST_NAMED,
                **owner,
            )
        found = [JOBS.read(row) for row in rows]
        here = [job for job in found if job.session_key == session_key]
        if len(here) == 1:
            return here[0]
        if not found:
            raise no_automation(named)
        if len(found) > 1:
            raise Ambiguous(named, [job.id for job in found])
        return found[0]

    async def status(self, job: Automation) -> AutomationStatus:
        """Return when an automation is due next, and since when it runs."""
        (status,) = await self._statuses([job])
        return status

    async def runs(
        self, named: str, viewer: str, after: str | None, limit: int
    ) -> Sequence[RunStatus]:
        """Return runs of an automation, the newest first; `after` is the `place` of one.

        They stay for a while when it is gone: then it has its id alone.
        """
        job_id = await self._job_id(named, viewer)
        at, run_id = (2**62, _NEWEST) if after is None else _place(after)
        sees_all = rules.sees_all(viewer)
        owner = {} if sees_all else {"owner": viewer}
        rows = await self._store.read(
            _PAGE_OF_RUNS.format(seen="TRUE" if sees_all else _OWN),
            job_id=job_id,
            at=at,
            id=run_id,
            limit=limit,
            **owner,
        )
        return await self._as_they_are(RUNS.read_known(rows))

    async def run(self, run_id: str, viewer: str) -> RunStatus:
        """Return one run with its record."""
        seen = "TRUE" if rules.sees_all(viewer) else _OWN
        owner = {} if rules.sees_all(viewer) else {"owner": viewer}
        rows = await self._store.read(RUNS.select(f"WHERE id = :id AND {seen}"), id=run_id, **owner)
        if not rows:
            raise NotFound("run_id", f"no run {run_id[:120]!r}")
        (status,) = await self._as_they_are([RUNS.read(rows[0])])
        return status

    async def queued(self, session_key: str) -> Sequence[RunStatus]:
        """Return the runs that wait in a session, the oldest first."""
        rows = await self._store.read(_QUEUED, key=session_key, limit=MOST_QUEUED)
        return await self._as_they_are(RUNS.read_known(rows))

    async def run_ids(self, turns: Collection[Turn]) -> dict[str, str]:
        """Return the runs that turns were opened for, by the turn; also of one that was cut off."""
        opened_by = {turn.opened_by: turn.id for turn in turns if turn.kind.rule.is_scheduled}
        if not opened_by:
            return {}
        rows = await self._store.read(
            "SELECT stimulus_id, id FROM automation_runs WHERE stimulus_id IN :ids",
            ids=list(opened_by),
        )
        runs = dict((row[0], row[1]) for row in rows)
        return {turn.id: runs[turn.opened_by] for turn in turns if turn.opened_by in runs}

    async def count_enabled(self, agent_id: str) -> int:
        """Return how many automations of an agent are on."""
        ((count,),) = await self._store.read(COUNT_ENABLED, id=agent_id)
        return count

    async def _job_id(self, named: str, viewer: str) -> str:
        try:
            return (await self.find(named, viewer)).id
        except NotFound:
            seen = "TRUE" if rules.sees_all(viewer) else _OWN
            owner = {} if rules.sees_all(viewer) else {"owner": viewer}
            rows = await self._store.read(
                f"SELECT 1 FROM automation_runs WHERE job_id = :id AND {seen} LIMIT 1",  # noqa: S608
                id=named,
                **owner,
            )
            if not rows:
                raise
            return named

    async def _statuses(self, jobs: Sequence[Automation]) -> list[AutomationStatus]:
        rows = await self._store.read(_RUNNING, ids=[job.id for job in jobs]) if jobs else ()
        running: dict[str, int] = {row[0]: row[1] for row in rows}
        # Off the loop: a schedule that is looked at first takes up to a millisecond.
        upcoming = await asyncio.to_thread(lambda: [next_runs(job) for job in jobs])
        return [
            AutomationStatus(job=job, next_runs=found, running_since=running.get(job.id))
            for job, found in zip(jobs, upcoming, strict=True)
        ]

    async def _as_they_are(self, runs: Sequence[AutomationRun]) -> list[RunStatus]:
        """Return runs with their states of now, and what became of their answers."""
        now = self._clock.now()
        waiting = {run.stimulus_id for run in runs if run.ended_at is None}
        stimuli = await self._by_key(
            "SELECT id, state, state_reason FROM stimuli WHERE id IN :keys", waiting
        )
        busy = await self._by_key(
            "SELECT session_key FROM lanes WHERE session_key IN :keys AND turn_id IS NOT NULL",
            {run.session_key for run in runs if run.ended_at is None},
        )
        deliveries = await self._deliveries(runs)
        found: list[RunStatus] = []
        for run in runs:
            state, reason = state_of(
                run,
                stimuli.get(run.stimulus_id or ""),
                is_busy=run.session_key in busy,
                now=now,
            )
            delivery = deliveries.get(run.turn_id or "", RunDelivery.NONE)
            found.append(RunStatus(run=run, state=state, reason=reason, delivery=delivery))
        return found

    async def _deliveries(self, runs: Sequence[AutomationRun]) -> Mapping[str, RunDelivery]:
        """Return what became of the answers of turns, by the turn; of the others there are none."""
        ended = {run.turn_id for run in runs if run.turn_id is not None}
        if not ended:
            return {}
        rows = await self._store.read(
            "SELECT turn_id, state FROM deliveries WHERE turn_id IN :ids", ids=list(ended)
        )
        states: dict[str, set[str]] = {}
        for turn_id, state in rows:
            states.setdefault(turn_id, set()).add(state)
        found = {
            turn_id: RunDelivery(next(one for one in _WORST_FIRST if one in of_turn))
            for turn_id, of_turn in states.items()
        }
        unsent = [turn_id for turn_id in ended if turn_id not in found]
        withheld = await self._withheld(unsent)
        return found | dict.fromkeys(withheld, RunDelivery.WITHHELD)

    async def _withheld(self, turn_ids: Sequence[str]) -> list[str]:
        """Return the turns whose answers would have been sent, from sessions that send nothing."""
        if not turn_ids:
            return []
        rows = await self._store.read(TURNS.select("WHERE id IN :ids"), ids=list(turn_ids))
        answers = [turn for turn in TURNS.read_known(rows) if _is_for_a_door(turn)]
        if not answers:
            return []
        rows = await self._store.read(
            SESSIONS.select("WHERE key IN :keys"), keys=list({turn.session_key for turn in answers})
        )
        silent = {
            session.key
            for session in SESSIONS.read_known(rows)
            if session.overrides.send_policy == "deny"
        }
        return [turn.id for turn in answers if turn.session_key in silent]

    async def _by_key(self, sql: str, keys: Collection[str | None]) -> dict[str, Row]:
        wanted = [key for key in keys if key is not None]
        rows = await self._store.read(sql, keys=wanted) if wanted else ()
        return {row[0]: row for row in rows}


def next_runs(job: Automation) -> tuple[int, ...]:
    """Return when a job is due next; the first time is the one that was set."""
    if job.next_run_at is None:
        return ()
    return (job.next_run_at, *_upcoming(job.schedule, job.next_run_at))


@lru_cache(REMEMBERED)
def _upcoming(schedule: Schedule, after: int) -> tuple[int, ...]:
    return tuple(schedules.upcoming(schedule, after, NEXT_RUNS - 1))


def state_of(
    run: AutomationRun, stimulus: Row | None, *, is_busy: bool, now: int
) -> tuple[RunState, str | None]:
    """Return the state of a run now, and why it is that."""
    if run.ended_at is not None or stimulus is None:
        return run.state, run.reason
    _, state, reason = stimulus
    match State(state):
        case State.CLAIMED:
            return RunState.RUNNING, None
        case State.PARKED:
            return RunState.PARKED, reason
        case _ if run.starts_at > now:
            return RunState.DUE, None
        case _ if run.attempts > 1:
            return RunState.DEFERRED, "interrupted"
        case _:
            return (RunState.DEFERRED, "busy") if is_busy else (RunState.DUE, None)


def no_automation(words: str) -> NotFound:
    return NotFound("id", f"no automation {words[:80]!r}")


def _conditions(viewer: str, wanted: AutomationFilter) -> tuple[list[str], dict[str, object]]:
    conditions: list[str] = []
    params: dict[str, object] = {}
    if not rules.sees_all(viewer):
        conditions.append(_OWN)
        params["owner"] = viewer
    if wanted.session_key is not None:
        conditions.append("session_key = :session_key AND category <> 'system'")
        params["session_key"] = wanted.session_key
    if wanted.agent_id is not None:
        conditions.append("agent_id = :agent_id")
        params["agent_id"] = wanted.agent_id
    if wanted.state is AutomationState.ENABLED:
        conditions.append("disabled_reason IS NULL")
    elif wanted.state is not None:
        conditions.append("disabled_reason = :state")
        params["state"] = wanted.state.value
    return conditions, params


def _is_for_a_door(turn: Turn) -> bool:
    """Tell whether the answer of a turn is one that is sent, if its session sends anything."""
    is_its_own = turn.kind.rule.limit is Limit.JOB and turn.route is not None
    if not is_its_own or turn.route is None or not turn.route.is_sent_to:
        return False
    return not spoken(turn.reply or "").is_silent


def _place(cursor: str) -> tuple[int, str]:
    at, _, run_id = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < 16):
        raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return int(at), run_id
