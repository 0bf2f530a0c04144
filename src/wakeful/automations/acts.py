"""What people and agents do about automations: each is one commit, under the lock of its lane."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from wakeful.access import audit, rules
from wakeful.automations import finishing, importing, jobs, runs, schedules, wishes
from wakeful.automations.importing import ImportedJob, ImportOutcome, TheirJob
from wakeful.automations.scheduling import Scheduling
from wakeful.automations.wishes import Checks, Edits, Maker, Wish
from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settlement
from wakeful.gate.locking import locks_of, write_in_lanes
from wakeful.intake.bindings import Bindings
from wakeful.store.database import Lock, Store, Tx
from wakeful.transcript import sessions
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.automation import (
    Automation,
    AutomationLimits,
    AutomationRun,
    Category,
    DisabledReason,
    Schedule,
)
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import State, Trust

T = TypeVar("T")

_OWN = frozenset({KeyKind.MAIN, KeyKind.ACTIVITY})  # sessions that are made when they are needed


class NameTaken(InvalidInput):
    """An agent has an enabled automation of this name."""

    def __init__(self, name: str, ids: list[str]) -> None:
        super().__init__("name", f"{name!r} is taken by {', '.join(ids) or 'another one'}")
        self.name = name
        self.ids = ids


class _NotAllGood(Exception):
    """One job of an import is bad: nothing of it is kept."""

    def __init__(self, reports: list[ImportedJob]) -> None:
        super().__init__()
        self.reports = reports


class RuntimesOwn(InvalidInput):
    """The runtime's own automation: nobody else changes it."""


class AutomationActs:
    """Makes, changes and removes automations."""

    def __init__(
        self,
        store: Store,
        bindings: Bindings,
        settlement: Settlement,
        scheduling: Scheduling,
        checks: Checks,
    ) -> None:
        self._store = store
        self._bindings = bindings
        self._settlement = settlement
        self._scheduling = scheduling
        self._bus = scheduling.bus
        self._ids = scheduling.ids
        self._clock = scheduling.clock
        self._agents = scheduling.agents
        self._checks = checks

    def follow(self, limits: AutomationLimits) -> None:
        """Refuse by other limits from now on."""
        self._checks = replace(self._checks, limits=limits)

    async def add(self, wish: Wish, maker: Maker, *, dry_run: bool = False) -> Automation:
        """Make an automation; a dry run only says what would be made, or why not."""
        job = self.built(wish, maker, self._ids.new("job"), self._clock.now())
        if dry_run:
            await write_in_lanes(self._store, [job.session_key], lambda tx: self._check(tx, job))
            return job
        failpoint("automation")
        return await write_in_lanes(
            self._store, [job.session_key], lambda tx: self.add_in(tx, job, maker)
        )

    @property
    def zone(self) -> tzinfo | None:
        return self._scheduling.zone

    @property
    def limits(self) -> AutomationLimits:
        return self._checks.limits

    def built(self, wish: Wish, maker: Maker, job_id: str, now: int) -> Automation:
        """Return the automation that somebody wishes for; it is not kept yet."""
        wish = wishes.checked(wish, maker, self._checks)
        schedule = self._schedule(wish, maker, now)
        agent_id, key = self._place(wish, maker.owner, job_id)
        return Automation(
            **wishes.fields_of(wish),
            id=job_id,
            agent_id=agent_id,
            owner=maker.owner,
            trust=maker.trust,
            by_person=maker.is_person,
            cause_id=maker.cause_id,
            session_key=key,
            schedule=schedule,
            enabled=wish.enabled,
            disabled_reason=None if wish.enabled else DisabledReason.PAUSED,
            next_run_at=schedules.next_after(schedule, now) if wish.enabled else None,
            zone_data=schedules.zone_data_version(schedule),
            created_at=now,
            updated_at=now,
        )

    def add_in(self, tx: Tx, job: Automation, maker: Maker) -> Automation:
        """Keep a new automation as part of another change, which holds the lock of its lane."""
        self._check(tx, job)
        self._note(tx, maker, "add", job.id)
        jobs.put(tx, job)
        jobs.set_timers(tx, job)
        finishing.publish(tx, self._bus, job, "created")
        return job

    async def import_jobs(
        self, found: Sequence[Any], sessions: Mapping[str, str], maker: Maker
    ) -> list[ImportedJob]:
        """Take over the jobs of another program: all that can be meant, or none if one cannot."""
        if len(found) > importing.MOST_JOBS:
            rule = f"at most {importing.MOST_JOBS} at once, not {len(found)}"
            raise InvalidInput("jobs", rule)
        theirs = importing.read(found, sessions, self._clock.now())
        built = [self._taken_over(one, maker) for one in theirs]
        lanes = {job.session_key for _, job in built if job is not None}
        try:
            return await write_in_lanes(
                self._store, sorted(lanes), lambda tx: self._import(tx, built, maker)
            )
        except _NotAllGood as refused:
            return refused.reports

    def _taken_over(self, one: TheirJob, maker: Maker) -> tuple[TheirJob, Automation | None]:
        """Return the automation that a job of another program becomes, if it becomes one."""
        if one.wish is None:
            return one, None
        try:
            job = self.built(one.wish, maker, self._ids.new("job"), self._clock.now())
        except InvalidInput as error:
            return importing.refused(one, str(error)), None
        if one.is_legacy:
            job = replace(job, category=Category.LEGACY, deliver_to=one.route)
            one = importing.with_its_door(one, self._checks.knows_door)
        return one, replace(job, imported_from=one.id)

    def _import(
        self, tx: Tx, built: Sequence[tuple[TheirJob, Automation | None]], maker: Maker
    ) -> list[ImportedJob]:
        reports: list[ImportedJob] = []
        for one, job in built:
            if job is None:
                reports.append(one.report(one.outcome))
            elif jobs.is_imported(tx, job.agent_id, one.id):
                reports.append(one.report(ImportOutcome.UNCHANGED))
            else:
                reports.append(self._import_one(tx, one, job, maker))
        if not importing.are_all_good(reports):
            raise _NotAllGood(list(map(importing.held_back, reports)))
        return reports

    def _import_one(self, tx: Tx, one: TheirJob, job: Automation, maker: Maker) -> ImportedJob:
        try:
            self.add_in(tx, job, maker)
        except InvalidInput as error:
            return one.report(ImportOutcome.BAD, str(error))
        return one.report(ImportOutcome.IMPORTED)

    async def edit(
        self, job_id: str, changes: Edits, maker: Maker, *, dry_run: bool = False
    ) -> Automation:
        """Change an automation. Another schedule voids what was due; other edits move nothing."""
        found = await self._known(job_id)
        wanted = self._edited(found, changes, maker, self._clock.now())
        lanes = {found.session_key, wanted.session_key}
        return await write_in_lanes(
            self._store,
            sorted(lanes),
            lambda tx: self.edit_in(tx, job_id, changes, maker, dry_run=dry_run),
        )

    def edit_in(
        self, tx: Tx, job_id: str, changes: Edits, maker: Maker, *, dry_run: bool = False
    ) -> Automation:
        job = self._writable(tx, job_id)
        edited = self._edited(job, changes, maker, tx.now)
        lane_rows.require(tx, {job.session_key, edited.session_key})
        self._check(tx, edited)
        if not dry_run:
            self._note(tx, maker, "edit", job_id)
            self._replace(tx, edited)
            if edited.revision != job.revision:
                jobs.drop_retry(tx, job_id)
        return edited

    async def pause(self, job_id: str, maker: Maker) -> Automation:
        """Let nothing of an automation be due until it is resumed."""
        return await self._write(job_id, lambda tx: self.pause_in(tx, job_id, maker))

    def pause_in(self, tx: Tx, job_id: str, maker: Maker) -> Automation:
        """Pause as part of another change, which holds `locks`; so do those that follow."""
        job = self._writable(tx, job_id)
        if not job.enabled:
            return job
        self._note(tx, maker, "pause", job_id)
        paused = finishing.disabled(tx, self._bus, job, DisabledReason.PAUSED)
        jobs.put(tx, paused)
        return paused

    async def resume(self, job_id: str, maker: Maker) -> Automation:
        """Let an automation be due again, from now on."""
        return await self._write(job_id, lambda tx: self.resume_in(tx, job_id, maker))

    def resume_in(self, tx: Tx, job_id: str, maker: Maker) -> Automation:
        job = self._writable(tx, job_id)
        if job.enabled:
            return job
        self._note(tx, maker, "resume", job_id)
        resumed = _enabled(job, tx.now)
        self._check_name(tx, resumed)
        self._replace(tx, resumed)
        return resumed

    async def run(self, job_id: str, maker: Maker) -> AutomationRun:
        """Run an automation now; its schedule stays as it is."""
        return await self._write(job_id, lambda tx: self.run_in(tx, job_id, maker))

    def run_in(self, tx: Tx, job_id: str, maker: Maker) -> AutomationRun:
        job = self._writable(tx, job_id)
        self._note(tx, maker, "run", job_id)
        return self._scheduling.run_now(tx, job)

    async def remove(self, job_id: str, maker: Maker) -> Automation:
        """Remove an automation; what waits of it is cancelled, what runs goes on."""
        return await self._write(job_id, lambda tx: self.remove_in(tx, job_id, maker))

    def remove_in(self, tx: Tx, job_id: str, maker: Maker) -> Automation:
        job = self._writable(tx, job_id)
        self._note(tx, maker, "remove", job_id)
        jobs.remove(tx, [job_id])
        finishing.publish(tx, self._bus, job, "removed")
        self._settlement.settle(tx, runs.waiting_of(tx, job_id), State.CANCELLED, "by-sender")
        lane_rows.touch(tx, job.session_key)
        return job

    def locks(self, job: Automation) -> list[Lock]:
        """Return what whoever changes an automation as part of something else must hold."""
        return locks_of([job.session_key])

    def on_deleted(self, tx: Tx, session_key: str) -> None:
        """Remove the automations that are bound to a session which is deleted."""
        gone = jobs.bound_to(tx, session_key)
        jobs.remove(tx, [job.id for job in gone])
        for job in gone:
            finishing.publish(tx, self._bus, job, "removed", "session-deleted")

    async def _known(self, job_id: str) -> Automation:
        rows = await self._store.read(jobs.JOBS.select("WHERE id = :id"), id=job_id)
        if not rows:
            raise _no_job(job_id)
        return jobs.JOBS.read(rows[0])

    async def _write(self, job_id: str, write: Callable[[Tx], T]) -> T:
        found = await self._known(job_id)
        return await write_in_lanes(self._store, [found.session_key], write)

    def _writable(self, tx: Tx, job_id: str) -> Automation:
        job = jobs.get(tx, job_id)
        if job is None:
            raise _no_job(job_id)
        if job.category is Category.SYSTEM:
            raise RuntimesOwn("id", f"{job.name!r} is the runtime's own")
        lane_rows.require(tx, {job.session_key})  # it may have been moved meanwhile
        return job

    def _schedule(self, wish: Wish, maker: Maker, now: int) -> Schedule:
        schedule = schedules.checked(wish.schedule, now, self.zone)
        if maker.is_agent or maker.trust is Trust.EXTERNAL:
            wishes.check_pace(schedule, now, self._checks.limits.min_spacing_s)
        return schedule

    def _place(self, wish: Wish, owner: str, job_id: str) -> tuple[str, SessionKey]:
        """Return the agent that an automation is for, and the session in which it runs."""
        if wish.session_key is None:
            agent_id = wish.agent_id or self._bindings.default_agent
            key = keys.automation(agent_id, job_id)
        else:
            named = keys.canonical(wish.session_key, self._bindings.default_agent, "session_key")
            key = wishes.checked_session(self._bindings.answering_session(named, owner))
            agent_id = keys.agent_of(key)
            if wish.agent_id not in (None, agent_id):
                raise InvalidInput("agent_id", f"the session is of the agent {agent_id!r}")
        if self._agents.find(agent_id) is None:
            field = "agent_id" if wish.session_key is None else "session_key"
            raise InvalidInput(field, f"no agent {agent_id[:64]!r} is configured")
        return agent_id, key

    def _edited(self, job: Automation, changes: Edits, maker: Maker, now: int) -> Automation:
        """Return an automation with what somebody changes; it stays whose it is.

        It is trusted no more than whoever has changed it.
        """
        checks = replace(self._checks, kept=job.deliver_to)
        wish = wishes.checked(wishes.changed(wishes.wish_of(job), changes), maker, checks)
        agent_id, key = job.agent_id, SessionKey(job.session_key)
        if _is_moved(changes):  # else it stays, also where its session has another name by now
            agent_id, key = self._place(wish, job.owner, job.id)
        is_external = Trust.EXTERNAL in (job.trust, maker.trust)
        edited = replace(
            job,
            **wishes.fields_of(wish),
            agent_id=agent_id,
            session_key=key,
            trust=Trust.EXTERNAL if is_external else job.trust,
            by_person=job.by_person and not is_external,
            updated_at=now,
        )
        if job.category is Category.LEGACY and edited.is_isolated:
            edited = replace(edited, category=Category.LEGACY)
        if isinstance(changes.schedule, Schedule) and changes.schedule != job.schedule:
            schedule = self._schedule(wish, maker, now)
            edited = replace(
                edited,
                schedule=schedule,
                revision=job.revision + 1,
                zone_data=schedules.zone_data_version(schedule),
                failures_in_a_row=0,
                next_run_at=schedules.next_after(schedule, now) if job.enabled else None,
            )
            if job.disabled_reason is DisabledReason.FINISHED and changes.enabled is not False:
                return _enabled(edited, now)
        if changes.enabled is True and not job.enabled:
            return _enabled(edited, now)
        if changes.enabled is False and job.enabled:
            return replace(
                edited, enabled=False, disabled_reason=DisabledReason.PAUSED, next_run_at=None
            )
        return edited

    def _replace(self, tx: Tx, job: Automation) -> None:
        """Keep a changed automation, and what is due of it now."""
        jobs.put(tx, job)
        jobs.set_timers(tx, job)
        if not job.enabled:
            jobs.drop_retry(tx, job.id)
        finishing.publish(tx, self._bus, job, "changed")

    def _note(self, tx: Tx, maker: Maker, what: str, job_id: str) -> None:
        audit.note(tx, self._ids, who=maker.name, action=f"automations.{what}", target=job_id)

    def _check(self, tx: Tx, job: Automation) -> None:
        """Refuse what its session, its name or its number forbid."""
        if not job.is_isolated:
            self._check_session(tx, job)
        self._check_name(tx, job)

    def _check_session(self, tx: Tx, job: Automation) -> None:
        key = job.session_key
        session = sessions.policies(tx, [key]).get(key)
        is_made = keys.parse(SessionKey(key)).kind in _OWN and rules.sees_all(job.owner)
        if not (is_made if session is None else rules.may_write(job.owner, session.owner)):
            raise wishes.no_session(key)
        others = jobs.count_of_session(tx, key, but=job.id)
        if others >= self._checks.limits.per_session:
            rule = f"has {others} automations already, as many as one session may have"
            raise InvalidInput("session_key", rule)

    def _check_name(self, tx: Tx, job: Automation) -> None:
        others = [one for one in jobs.named(tx, job.agent_id, job.name) if one != job.id]
        if others and job.enabled:
            raise NameTaken(job.name, others)


def _is_moved(changes: Edits) -> bool:
    """Tell whether somebody says where an automation runs."""
    given = (changes.session_key, changes.isolated, changes.agent_id)
    return any(one is not UNSET for one in given)


def _enabled(job: Automation, now: int) -> Automation:
    """Return an automation that is due again from now on."""
    next_at = schedules.next_after(job.schedule, now)
    if next_at is None:
        raise InvalidInput("schedule", "its time has passed: give it another one")
    return replace(
        job,
        enabled=True,
        disabled_reason=None,
        next_run_at=next_at,
        failures_in_a_row=0,
        updated_at=now,
    )


def _no_job(words: str) -> NotFound:
    return NotFound("id", f"no automation {words[:80]!r}")
