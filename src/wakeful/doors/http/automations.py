"""Automations: what is done at which times, and the runs that came of it."""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import asdict

from wakeful.automations.acts import NameTaken, RuntimesOwn
from wakeful.automations.importing import ImportedJob
from wakeful.automations.wishes import Edits, Wish
from wakeful.doors import automations, naming
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import shaped, time_of, time_or_none
from wakeful.doors.messaging import Forbidden
from wakeful.services import Services, Views
from wakeful.views.automations import (
    Ambiguous,
    AutomationFilter,
    AutomationState,
    AutomationStatus,
    RunDelivery,
    RunStatus,
)
from wakeful.vocabulary.automation import (
    Category,
    DisabledReason,
    Missed,
    Overlap,
    Payload,
    PostToMain,
    PromptRef,
    RunCause,
    RunState,
    Schedule,
    WakeMode,
)
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route

T = TypeVar("T")


class AutomationBody(Wish):
    """What is wished for: what is said to the agent, when, and in which session."""


class JobsBody(Given):
    """The `jobs` of nanobot's file, and which of our sessions stand for theirs."""

    jobs: Sequence[Any]
    map: dict[str, str] = {}


class ImportedJobs(Record):
    """What became of each job, in the order of the file."""

    items: Sequence[ImportedJob]


class AutomationEdits(Edits):
    """What is changed; what is not named stays."""


class AutomationShape(Record):
    """An automation."""

    id: str
    name: str
    description: str | None
    agent_id: str
    category: Category
    session_key: str
    isolated: bool
    schedule: Schedule
    payload: Payload
    post_to_main: PostToMain | None
    deliver_to: Route | None
    best_effort: bool
    wake: WakeMode | None
    missed: Missed
    overlap: Overlap
    timeout_s: int | None
    delete_after_run: bool
    respect_quiet_hours: bool
    enabled: bool
    disabled_reason: DisabledReason | None
    owner: str
    revision: int
    created_at: datetime
    updated_at: datetime
    next_run_at: datetime | None
    next_runs: Sequence[datetime]
    running_since: datetime | None
    last_run: str | None  # the last one that ended, as are the following
    last_run_at: datetime | None
    last_status: RunState | None
    last_error: str | None
    last_duration_ms: int | None
    failures_in_a_row: int


class RunShape(Record):
    """A run; `delivery` tells what became of its answer, whatever became of the run."""

    run_id: str
    job_id: str
    job_name: str
    session_key: str
    trigger: RunCause
    scheduled_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    late_ms: int
    state: RunState
    reason: str | None
    attempts: int
    revision: int
    count: int  # occurrences that it stands for
    stimulus_id: str | None
    turn_id: str | None
    delivery: RunDelivery
    cost: float | None
    prompt_ref: PromptRef | None


class RunRecordShape(RunShape):
    """A run with what its model was told, and what went wrong."""

    prompt_variables: dict[str, Any] | None
    rendered_prompt: str | None
    error: str | None
    traceback: str | None


class RunNow(Record):
    """The run that was asked for."""

    run_id: str


class QueuedRun(Record):
    """A run that waits in a session."""

    job_id: str
    name: str
    run_id: str
    state: RunState


class AutomationsQuery(PageQuery):
    """Which automations: of a session, of an agent, those that are on or off."""

    session: str | None = None
    agent: str | None = None
    state: AutomationState | None = None


class DryQuery(Given):
    """Whether it is only told what would be, or why not."""

    dry_run: bool = False


class AutomationEndpoints:
    """What is due when, and what came of it."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._view = views.automations

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/automations",
                scope=ANYBODY,
                summary="List automations, the newest first",
                answer=self.page,
                query=AutomationsQuery,
                returns={200: Page[AutomationShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/automations/{id}",
                scope=ANYBODY,
                summary="Look at an automation, by id or name",
                answer=self.get,
                returns={200: AutomationShape},
            ),
            Endpoint(
                method="GET",
                path="/api/automations/{id}/runs",
                scope=ANYBODY,
                summary="List the runs of an automation, the newest first",
                answer=self.runs,
                query=PageQuery,
                returns={200: Page[RunShape]},
                links=(Link("GET", "/api/runs/{id}", "id", "/items/0/run_id"),),
            ),
            Endpoint(
                method="GET",
                path="/api/runs/{id}",
                scope=ANYBODY,
                summary="Look at a run: what its model was told, and what went wrong",
                answer=self.run,
                returns={200: RunRecordShape},
            ),
        ]

    async def page(self, call: Call[AutomationsQuery, Nothing]) -> Page[AutomationShape]:
        query = call.query
        wanted = AutomationFilter(
            session_key=None if query.session is None else self._session(call, query.session),
            agent_id=query.agent,
            state=query.state,
        )
        page = await self._view.page(call.principal.viewer, wanted, query.after, query.limit)
        return Page(items=[automation_shape(one) for one in page.items], next=page.next)

    async def get(self, call: Call[Nothing, Nothing]) -> AutomationShape:
        job = await answer_or_problem(
            automations.find(self._views, call.principal, call.path["id"])
        )
        return automation_shape(await self._view.status(job))

    async def runs(self, call: Call[PageQuery, Nothing]) -> Page[RunShape]:
        query, viewer = call.query, call.principal.viewer
        found = await answer_or_problem(
            self._view.runs(call.path["id"], viewer, query.after, query.limit + 1)
        )
        return paged(found, query.limit, run_shape, lambda one: one.place)

    async def run(self, call: Call[Nothing, Nothing]) -> RunRecordShape:
        found = await self._view.run(call.path["id"], call.principal.viewer)
        run = found.run
        return RunRecordShape(
            **asdict(run_shape(found)),
            prompt_variables=run.prompt_variables,
            rendered_prompt=run.rendered_prompt,
            error=run.error,
            traceback=run.traceback if call.principal.is_operator else None,
        )

    def _session(self, call: Call[Any, Any], words: str) -> str:
        key = naming.key_of(self._views, words, "session")
        return self._views.bindings.answering_session(key, call.principal.viewer)


class AutomationChanges:
    """Making automations, changing them, and running one now."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        at = "/api/automations"
        return [
            Endpoint(
                method="POST",
                path=at,
                scope="send",
                summary="Make an automation, or say what would be made",
                answer=self.add,
                query=DryQuery,
                body=AutomationBody,
                returns={201: AutomationShape, 200: AutomationShape},
                links=_LINKS,
            ),
            Endpoint(
                method="POST",
                path=f"{at}/import",
                scope="operator",
                summary="Take over jobs of nanobot: all of them, or none if one is bad",
                answer=self.import_jobs,
                body=JobsBody,
                returns={200: ImportedJobs},
            ),
            Endpoint(
                method="PATCH",
                path=f"{at}/{{id}}",
                scope="send",
                summary="Change an automation; another schedule voids what was due",
                answer=self.edit,
                query=DryQuery,
                body=AutomationEdits,
                returns={200: AutomationShape},
                links=_LINKS,
            ),
            _change("DELETE", f"{at}/{{id}}", _REMOVE, self.remove, {200: AutomationShape}),
            _change("POST", f"{at}/{{id}}/pause", _PAUSE, self.pause, {200: AutomationShape}),
            _change("POST", f"{at}/{{id}}/resume", _RESUME, self.resume, {200: AutomationShape}),
            _change("POST", f"{at}/{{id}}/run", _RUN, self.run, {202: RunNow}),
        ]

    async def add(self, call: Call[DryQuery, AutomationBody]) -> tuple[int, AutomationShape]:
        is_dry = call.query.dry_run
        made = automations.add(self._services, call.principal, call.body, is_dry=is_dry)
        return 200 if is_dry else 201, automation_shape(await answer_or_problem(made))

    async def import_jobs(self, call: Call[Nothing, JobsBody]) -> ImportedJobs:
        jobs, sessions = call.body.jobs, call.body.map
        found = await automations.import_jobs(self._services, call.principal, jobs, sessions)
        return ImportedJobs(items=found)

    async def edit(self, call: Call[DryQuery, AutomationEdits]) -> AutomationShape:
        named, is_dry = call.path["id"], call.query.dry_run
        edited = automations.edit(self._services, call.principal, named, call.body, is_dry=is_dry)
        return automation_shape(await answer_or_problem(edited))

    async def remove(self, call: Call[Nothing, Nothing]) -> AutomationShape:
        gone = automations.remove(self._services, call.principal, call.path["id"])
        return automation_shape(await answer_or_problem(gone))

    async def pause(self, call: Call[Nothing, Nothing]) -> AutomationShape:
        paused = automations.pause(self._services, call.principal, call.path["id"])
        return automation_shape(await answer_or_problem(paused))

    async def resume(self, call: Call[Nothing, Nothing]) -> AutomationShape:
        resumed = automations.resume(self._services, call.principal, call.path["id"])
        return automation_shape(await answer_or_problem(resumed))

    async def run(self, call: Call[Nothing, Nothing]) -> tuple[int, RunNow]:
        run = await answer_or_problem(
            automations.run(self._services, call.principal, call.path["id"])
        )
        return 202, RunNow(run_id=run.id)


async def answer_or_problem(asked: Awaitable[T]) -> T:
    """Return what came of a wish, or why it was refused, in the words of this door."""
    try:
        return await asked
    except NameTaken as error:
        raise Problem("name-taken", str(error), field=error.field, ids=tuple(error.ids)) from None
    except Ambiguous as error:
        raise Problem("ambiguous", error.rule, field=error.field, ids=tuple(error.ids)) from None
    except (RuntimesOwn, Forbidden) as error:
        raise Problem("forbidden", str(error), field=error.field) from None


def automation_shape(status: AutomationStatus) -> AutomationShape:
    job = status.job
    return shaped(
        AutomationShape,
        job,
        isolated=job.is_isolated,
        next_runs=[time_of(at) for at in status.next_runs],
        running_since=time_or_none(status.running_since),
        last_run=job.last_run_id,
    )


def run_shape(status: RunStatus) -> RunShape:
    run = status.run
    return shaped(
        RunShape,
        run,
        run_id=run.id,
        trigger=run.cause,
        state=status.state,
        reason=status.reason,
        delivery=status.delivery,
    )


async def queued_in(views: Views, session_key: str) -> list[QueuedRun]:
    """Return the runs that wait in a session."""
    return [
        QueuedRun(job_id=one.run.job_id, name=one.run.job_name, run_id=one.run.id, state=one.state)
        for one in await views.automations.queued(session_key)
    ]


_LINKS = (
    Link("GET", "/api/automations/{id}", "id", "/id"),
    Link("POST", "/api/automations/{id}/pause", "id", "/id"),
    Link("POST", "/api/automations/{id}/resume", "id", "/id"),
    Link("POST", "/api/automations/{id}/run", "id", "/id"),
    Link("GET", "/api/automations/{id}/runs", "id", "/id"),
    Link("DELETE", "/api/automations/{id}", "id", "/id"),
)
_REMOVE = "Remove an automation; what waits of it is cancelled, what runs goes on"
_PAUSE = "Let nothing of an automation be due until it is resumed"
_RESUME = "Let an automation be due again, from now on"
_RUN = "Run an automation now; its schedule stays as it is"


def _change(
    method: str, path: str, summary: str, answer: Any, returns: dict[int, type[Record]]
) -> Endpoint:
    return Endpoint(
        method=method, path=path, scope="send", summary=summary, answer=answer, returns=returns
    )
