"""When automations run, and when not: busy sessions, overlap, failures, changes, lost time."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.jobs import (
    HOUR_MS,
    HOUR_S,
    MAIN,
    ME,
    NOON,
    PATIENT,
    add,
    agent,
    ended,
    filed,
    job_of,
    running,
    runs_of,
    said,
    talking,
)
from wakeful.automations.scheduling import Foreseen
from wakeful.automations.wishes import Edits
from wakeful.gate.locking import write_in_lanes
from wakeful.operations.janitor import Janitor
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, says, wait_for
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due, TimerKind
from wakeful.timers.timers import Timer
from wakeful.tools.tool import tool
from wakeful.vocabulary.automation import (
    CronSchedule,
    DisabledReason,
    EverySchedule,
    RunCause,
    RunState,
    Schedule,
)
from wakeful.vocabulary.errors import InvalidInput, Permanent, Transient
from wakeful.vocabulary.retention import Retention

AT = {"kind": "at", "at": "2026-09-21T13:00:00"}  # an hour after NOON


def test_an_hour_after_noon_is_when_these_tests_say():
    assert datetime.fromtimestamp(NOON / 1000, UTC).isoformat() == "2026-09-21T12:00:00+00:00"


@tool(name="look")
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_run_waits_unseen_until_its_session_is_idle(settings_for: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("", then=says("", call("look")))
    model = Scripted([pause, "done with mine", "the report"])
    async with running(settings_for, model, clock, agents=[agent(model, tools=[look])]) as runtime:
        mine = await runtime.send("work")
        await pause.reached.wait()
        await add(runtime)
        clock.advance(HOUR_S)
        await filed(runtime)
        (waiting,) = await runs_of(runtime)
        pause.go_on.set()
        turn = await runtime.wait(mine)
        await ended(runtime)
        (run,) = await runs_of(runtime)

    assert (waiting.ended_at, waiting.started_at, waiting.turn_id) == (None, None, None)
    assert turn is not None
    assert (turn.state, turn.reply) == ("done", "done with mine")
    assert [any("report" in text for text in said(one)) for one in model.requests] == [
        False,
        False,
        True,
    ]
    assert (run.state, run.attempts) == (RunState.OK, 1)


async def test_an_occurrence_is_skipped_while_a_run_of_its_job_goes_on(settings_for: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("hm")
    async with running(settings_for, Scripted([pause]), clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        clock.advance(HOUR_S)
        await ended(runtime)
        pause.go_on.set()
        await ended(runtime, 2)
        first, second = await runs_of(runtime)
        job = await job_of(runtime)

    assert first.state is RunState.OK
    assert (second.state, second.reason, second.stimulus_id) == (RunState.SKIPPED, "overlap", None)
    assert job is not None
    assert job["next_run_at"] == NOON + 3 * HOUR_MS


async def test_ten_runs_may_queue_and_the_next_is_skipped(settings_for: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("hm")
    model = Scripted([pause, *["well"] * 9])
    async with running(settings_for, model, clock) as runtime:
        await add(runtime, overlap="queue")
        clock.advance(HOUR_S)
        await pause.reached.wait()
        for count in range(10):
            clock.advance(HOUR_S)
            await filed(runtime, min(count + 2, 10))
        await wait_for(runtime, "automation.skipped")
        pause.go_on.set()
        await ended(runtime, 11)
        found = await runs_of(runtime)

    assert [run.state for run in found] == [RunState.OK] * 10 + [RunState.SKIPPED]
    assert found[-1].reason == "queue-full"
    starts = [run.started_at or 0 for run in found[:10]]
    assert starts == sorted(starts)


async def test_failures_are_tried_again_later_and_later_but_not_past_the_next_occurrence(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    model = Scripted([Transient("down")] * 5 + ["at last"])
    agents = [agent(model, limits=replace(PATIENT, retries=0))]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        for count, wait_s in enumerate((30, 60, 300, 900), 1):
            await ended(runtime, count)
            clock.advance(wait_s)
        await ended(runtime, 5)
        left = await _retries(runtime)
        clock.advance(HOUR_S - 30 - 60 - 300 - 900)
        await ended(runtime, 6)
        found, job = await runs_of(runtime), await job_of(runtime)

    assert [run.cause for run in found] == [
        RunCause.SCHEDULE,
        *[RunCause.RETRY] * 4,
        RunCause.SCHEDULE,
    ]
    assert left == []  # an hour later would be past the next one
    assert len({run.scheduled_at for run in found}) == 2
    assert job is not None
    assert (job["enabled"], job["failures_in_a_row"], job["last_status"]) == (1, 0, "ok")


async def _retries(runtime: Runtime) -> list[int]:
    rows = await runtime.store.read("SELECT due_at FROM timers WHERE id LIKE 'automation-retry %'")
    return [row[0] for row in rows]


async def test_ten_failures_in_a_row_turn_a_job_off_with_one_notice(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    model = Scripted([Permanent("no")] * 3 + ["well"] + [Permanent("no")] * 10)
    async with running(settings_for, model, clock) as runtime:
        await add(runtime)
        counts: list[int] = []
        for count in range(14):
            clock.advance(HOUR_S)
            await ended(runtime, count + 1)
            counts.append((await job_of(runtime) or {})["failures_in_a_row"])
        job = await job_of(runtime)
        notices = await runtime.store.read("SELECT text FROM notices")
        timers = await runtime.store.read("SELECT id FROM timers WHERE kind = 'automation'")

    assert counts == [1, 2, 3, 0, *range(1, 11)]
    assert job is not None
    assert (job["enabled"], job["disabled_reason"]) == (0, DisabledReason.FAILURES)
    assert job["next_run_at"] is None
    assert timers == []
    assert len(notices) == 1
    assert "failed 10 times in a row" in notices[0][0]


@pytest.mark.parametrize("how", ["well", "fails", "goes"])
async def test_what_runs_once_stays_finished_or_goes_when_it_went_well(
    settings_for: SettingsFor, how: str
):
    clock = ManualClock(NOON)
    model = Scripted([Permanent("no") if how == "fails" else "well"])
    async with running(settings_for, model, clock) as runtime:
        await add(runtime, schedule=AT, delete_after_run=how != "well")
        clock.advance(HOUR_S)
        await ended(runtime)
        job, found = await job_of(runtime), await runs_of(runtime)

    assert len(found) == 1
    if how == "goes":
        assert job is None
    else:
        assert job is not None
        assert (job["enabled"], job["disabled_reason"]) == (0, "finished")


async def test_another_schedule_voids_what_was_due_and_other_edits_move_nothing(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime)
        acts = runtime.services.automations
        clock.advance(HOUR_S - 10)
        renamed = await acts.edit(job.id, Edits(name="news", message="read the news"), ME)
        moved = await acts.edit(job.id, Edits(schedule=EverySchedule(every_s=HOUR_S)), ME)
        clock.advance(20)
        once = {"kind": "at", "at": "2026-09-21T13:00:11"}
        await add(runtime, "another", schedule=once, isolated=True)
        clock.advance(1)
        await ended(runtime, name="another")  # so what else was due has had its time
        none = await runs_of(runtime, "news")
        clock.advance(HOUR_S)
        await ended(runtime, name="news")
        (run,) = await runs_of(runtime, "news")

    assert (renamed.next_run_at, renamed.revision) == (NOON + HOUR_MS, 1)
    assert (moved.next_run_at, moved.revision) == (NOON + 2 * HOUR_MS - 10_000, 2)
    assert none == []
    assert (run.scheduled_at, run.job_name, run.revision) == (moved.next_run_at, "news", 2)


async def test_a_timer_that_was_read_before_its_schedule_changed_goes_by_the_new_one(
    settings_for: SettingsFor,
):
    """The new one is due at the very same instant: what was found for the old one is not its."""
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime)
        keeper: Any = runtime._running.built.loops["timekeeper"]  # pyright: ignore[reportPrivateUsage]
        kind: TimerKind[Foreseen] = keeper._kinds["automation"]
        assert kind.prepare is not None
        fact = kind.prepare(await _timer(runtime))
        schedule = CronSchedule(expr="0 13 * * *", tz="UTC")
        await runtime.services.automations.edit(job.id, Edits(schedule=schedule), ME)
        due = Due(await _timer(runtime), fact)
        await write_in_lanes(runtime.store, [MAIN], lambda tx: kind.fire(tx, [due]))
        found = await job_of(runtime)

    assert found is not None
    assert found["next_run_at"] == NOON + 25 * HOUR_MS


async def test_a_commit_that_had_to_wait_files_all_that_has_come_meanwhile(
    settings_for: SettingsFor,
):
    """What was looked up before it says when the job was due next then, which is over."""
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        await add(runtime, schedule={"kind": "every", "every_s": 10})
        keeper: Any = runtime._running.built.loops["timekeeper"]  # pyright: ignore[reportPrivateUsage]
        kind: TimerKind[Foreseen] = keeper._kinds["automation"]
        assert kind.prepare is not None
        timer = await _timer(runtime)
        fact = kind.prepare(timer)
        clock.jump_to(NOON + 35_000)
        await write_in_lanes(runtime.store, [MAIN], lambda tx: kind.fire(tx, [Due(timer, fact)]))
        found = await job_of(runtime)
        filed = [run.scheduled_at for run in await runs_of(runtime)]

    assert found is not None
    assert found["next_run_at"] == NOON + 40_000
    assert filed == [NOON + 10_000, NOON + 20_000, NOON + 30_000]


async def _timer(runtime: Runtime) -> Timer:
    (row,) = await runtime.store.read(timers.TIMERS.select("WHERE kind = 'automation'"))
    return timers.TIMERS.read(row)


async def test_a_retry_of_another_schedule_keeps_nothing_unfinished(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    model = Scripted([Transient("down"), "well"])
    agents = [agent(model, limits=replace(PATIENT, retries=0))]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        job = await add(runtime, schedule=AT)
        clock.advance(HOUR_S)
        await ended(runtime)
        before = await _retries(runtime)
        later = {"kind": "at", "at": "2026-09-21T13:00:10"}
        await runtime.services.automations.edit(
            job.id, Edits(schedule=msgspec.convert(later, Schedule)), ME
        )
        after = await _retries(runtime)
        clock.advance(10)
        await ended(runtime, 2)
        found = await job_of(runtime)

    assert (len(before), after) == (1, [])
    assert found is not None
    assert found["disabled_reason"] == "finished"


async def test_a_run_for_an_agent_that_is_gone_says_so_and_the_next_one_fires(
    settings_for: SettingsFor,
):
    clock, model = ManualClock(NOON), talking()
    both = [agent(model), agent(model, id="scout")]
    async with running(settings_for, model, clock, agents=both) as runtime:
        await add(runtime, session_key="agent:scout:main")
        await runtime.reconfigure(agents=both[:1])
        clock.advance(HOUR_S)
        await ended(runtime)
        clock.advance(HOUR_S)
        await ended(runtime, 2)
        await runtime.reconfigure(agents=both)
        clock.advance(HOUR_S)
        await ended(runtime, 3)
        found, job = await runs_of(runtime), await job_of(runtime)
        notices = await runtime.store.read("SELECT text FROM notices WHERE kind = 'automation'")

    assert [(run.state, run.reason) for run in found] == [
        (RunState.ERROR, "no-agent"),
        (RunState.ERROR, "no-agent"),
        (RunState.OK, None),
    ]
    assert len(notices) == 1
    assert job is not None
    assert job["enabled"] == 1


async def test_a_deleted_session_takes_its_jobs_along_when_that_is_confirmed(
    settings_for: SettingsFor,
):
    clock, pause = ManualClock(NOON), Pause("hm")
    async with running(settings_for, Scripted(["hello", pause]), clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
        job = await add(runtime)
        apart = await add(runtime, "apart", isolated=True)
        clock.advance(HOUR_S - 1)
        await runtime.services.automations.edit(
            apart.id, Edits(schedule=EverySchedule(every_s=10 * HOUR_S)), ME
        )
        clock.advance(1)
        await pause.reached.wait()
        asked = await runtime.delete("main")
        deleted = await runtime.delete("main", is_confirmed=True)
        (run,) = await runs_of(runtime)
        gone, kept = await job_of(runtime), await job_of(runtime, "apart")
        timers = await runtime.store.read("SELECT id FROM timers WHERE kind = 'automation'")

    assert (asked.deleted, asked.blocked_by_automations) == (False, True)
    assert [(one.id, one.name, one.enabled) for one in asked.automations] == [
        (job.id, "report", True)
    ]
    assert deleted.deleted
    assert (run.state, run.reason) == (RunState.CANCELLED, "session-deleted")
    assert gone is None
    assert kept is not None
    assert timers == [(f"automation {apart.id}",)]


async def test_a_run_by_hand_takes_the_same_path_and_no_slot(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime)
        by_hand = await runtime.services.automations.run(job.id, ME)
        await ended(runtime)
        found, row = await runs_of(runtime), await job_of(runtime)

    assert by_hand.id.startswith(f"{job.id}:manual:")
    assert [(run.id, run.cause, run.state) for run in found] == [
        (by_hand.id, RunCause.MANUAL, RunState.OK)
    ]
    assert row is not None
    assert row["next_run_at"] == NOON + HOUR_MS


async def test_names_are_taken_by_what_is_enabled_and_too_many_jobs_are_refused(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime)
        with pytest.raises(InvalidInput, match=job.id):
            await add(runtime)
        await runtime.services.automations.pause(job.id, ME)
        other = await add(runtime)
        with pytest.raises(InvalidInput, match=other.id):
            await runtime.services.automations.resume(job.id, ME)
        for number in range(48):
            await add(runtime, f"job {number}")
        with pytest.raises(InvalidInput, match="50 automations"):
            await add(runtime, "one too many")
        ((count,),) = await runtime.store.read("SELECT COUNT(*) FROM automations")

    assert count == 50


async def test_old_runs_are_forgotten_with_what_was_said_in_them(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime, isolated=True, post_to_main={"mode": "none"})
        for count in range(5):
            clock.advance(HOUR_S)
            await ended(runtime, count + 1)
        runs = await runs_of(runtime)
        await _swept(runtime, clock, Retention(runs_per_job=2))
        some, said_in_some = await runs_of(runtime), await _transcripts(runtime)
        await runtime.services.automations.pause(job.id, ME)
        clock.advance(31 * 24 * HOUR_S)
        await _swept(runtime, clock, Retention())
        rest, said_in_rest = await runs_of(runtime), await _transcripts(runtime)

    # The last one stays beside those: its session shows what was said in it.
    assert [run.id for run in some] == [run.id for run in runs[2:]]
    assert said_in_some == {run.transcript_id for run in some}
    assert [run.id for run in rest] == [runs[-1].id]
    assert said_in_rest == {runs[-1].transcript_id}


async def _swept(runtime: Runtime, clock: ManualClock, kept: Retention) -> None:
    await Janitor(runtime.store, runtime.bus, clock, kept).sweep()
    await runtime.services.deletion.finish()


async def _transcripts(runtime: Runtime) -> set[str]:
    rows = await runtime.store.read("SELECT DISTINCT transcript_id FROM entries")
    return {row[0] for row in rows}
