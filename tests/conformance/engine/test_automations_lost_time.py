"""Automations after downtime, moved clocks and suspends, with thousands due, and on two nodes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.jobs import (
    HOUR_MS,
    HOUR_S,
    ME,
    NOON,
    add,
    agent,
    ended,
    filed,
    happened,
    job_of,
    running,
    runs_of,
    said,
    talking,
    talks,
)
from tests.conformance.engine.test_two_nodes import Node
from wakeful.automations.wishes import Wish
from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.gate.locking import write_in_lanes
from wakeful.models.model import Delta, Reply, Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Store, Tx
from wakeful.store.postgres import open_postgres
from wakeful.testing.kit import ManualClock, Pause, Scripted, wait_for
from wakeful.timers.timekeeper import Timekeeper, TimerKind
from wakeful.vocabulary.automation import EverySchedule, RunCause, RunState
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

MANY = 100  # due at one instant


@pytest.mark.parametrize(
    ("missed", "ran", "count"),
    [
        ("skip", [], 6),
        ("once", [6], 5),
        ({"within_s": 1_000}, [], 6),
        ({"within_s": 2_000}, [6], 5),
        ("all", [1, 2, 3, 4, 5, 6], 0),
    ],
    ids=["skip", "once", "too old", "not too old", "all"],
)
async def test_what_was_missed_while_nobody_ran_runs_as_the_automation_says(
    lasting: SettingsFor, missed: Any, ran: list[int], count: int
):
    clock = ManualClock(NOON)
    async with running(lasting, talking(), clock) as runtime:
        await add(runtime, missed=missed)
    clock.advance(6 * HOUR_S + 1_800)
    async with running(lasting, talking(), clock) as runtime:
        for number in range(len(ran)):
            await ended(runtime, number + 1 + (count > 0))
            clock.advance(5)
        if count:
            await wait_for(runtime, "automation.missed")
        found, job = await runs_of(runtime), await job_of(runtime)

    begun = [run for run in found if run.state is RunState.OK]
    left = [run for run in found if run.state is RunState.MISSED]
    assert [run.scheduled_at for run in begun] == [NOON + hour * HOUR_MS for hour in ran]
    assert {run.cause for run in begun} <= {RunCause.CATCH_UP}
    starts = [run.started_at or 0 for run in begun]
    assert [after - before for before, after in pairwise(starts)] == [5_000] * max(0, len(ran) - 1)
    assert [(run.count, run.scheduled_at) for run in left] == (
        [(count, NOON + (6 - len(ran)) * HOUR_MS)] if count else []
    )
    assert job is not None
    assert job["next_run_at"] == NOON + 7 * HOUR_MS


async def test_of_very_many_missed_a_hundred_run_and_one_row_tells_of_the_rest(
    lasting: SettingsFor,
):
    clock = ManualClock(NOON)
    async with running(lasting, talking(), clock) as runtime:
        job = await add(runtime, schedule={"kind": "every", "every_s": 1}, missed="all")
    clock.advance(6 * HOUR_S)
    async with running(lasting, talking(), clock) as runtime:
        await wait_for(runtime, "automation.missed")
        await runtime.services.automations.pause(job.id, ME)
        rows = await runs_of(runtime)
        written = await _written_at(runtime, clock.now())
        for number in range(100):
            await ended(runtime, number + 2)
            clock.advance(5)
        found = await runs_of(runtime)

    (missed,) = [run for run in rows if run.state is RunState.MISSED]
    assert missed.count == 21_500
    assert len(rows) == 101
    assert [run.state for run in found[1:]] == [RunState.OK] * 100
    assert [run.starts_at for run in found[1:]] == [
        NOON + 6 * HOUR_MS + 5_000 * number for number in range(100)
    ]
    assert written <= 1_000


async def _written_at(runtime: Runtime, now: int) -> int:
    """Count the rows that were written at an instant: at most what one commit wrote."""
    counted = 0
    for table, column in (
        ("automation_runs", "filed_at"),
        ("stimuli", "accepted_at"),
        ("events", "at"),
    ):
        ((count,),) = await runtime.store.read(
            f"SELECT COUNT(*) FROM {table} WHERE {column} = :now",
            now=now,
        )
        counted += count
    return counted


async def test_jobs_that_make_up_for_lost_time_begin_one_after_the_other(lasting: SettingsFor):
    clock = ManualClock(NOON)
    async with running(lasting, talking(), clock) as runtime:
        for name in "abcd":
            await add(runtime, name, isolated=True, post_to_main={"mode": "none"})
    clock.advance(HOUR_S + 1_800)
    async with running(lasting, talking(), clock) as runtime:
        await filed(runtime, 4)
        for number in range(4):
            await ended(runtime, number + 1)
            clock.advance(5)
        found = await runs_of(runtime)

    starts = sorted((run.started_at or 0) - found[0].filed_at for run in found)
    assert starts == [0, 5_000, 10_000, 15_000]


async def test_a_late_run_is_not_made_up_for_while_an_earlier_one_waits(lasting: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("hm")
    runtime = running(lasting, Scripted([pause]), clock, drain_s=0.01)
    async with runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        clock.advance(0.02)
        runtime.leave()
    clock.advance(3 * HOUR_S + 1_800)
    async with running(lasting, talking(), clock) as runtime:
        await happened(runtime, "automation.ok")
        await wait_for(runtime, "automation.missed")
        found = await runs_of(runtime)

    assert [(run.state, run.reason, run.count) for run in found] == [
        (RunState.OK, None, 1),
        (RunState.MISSED, None, 2),
        (RunState.SKIPPED, "overlap", 1),
    ]


async def test_clocks_that_jump_make_a_run_late_never_early_and_never_twice(
    settings_for: SettingsFor,
):
    """F15, I12."""
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        clock.jump_to(NOON + HOUR_MS // 2)  # an hour comes again
        clock.advance(HOUR_S)
        await _is_still(runtime, 1)
        clock.advance(HOUR_S // 2)
        await ended(runtime, 2)
        clock.jump_to(clock.now() + 3 * HOUR_MS + 600_000)
        clock.advance(60)
        await ended(runtime, 4)
        found = await runs_of(runtime)

    assert [(run.scheduled_at - NOON) // HOUR_MS for run in found] == [1, 2, 4, 5]
    assert [run.state for run in found] == [
        RunState.OK,
        RunState.OK,
        RunState.MISSED,
        RunState.OK,
    ]
    assert found[2].count == 2
    assert all(run.filed_at >= run.scheduled_at for run in found)
    assert found[3].late_ms == 660_000


async def _is_still(runtime: Runtime, count: int) -> None:
    """Let whatever is due happen, then look that nothing was."""
    await runtime.wait(await runtime.send("anything new?"))
    assert len(await runs_of(runtime)) == count


async def test_a_suspended_machine_makes_up_for_it_by_policy_not_in_a_burst(
    settings_for: SettingsFor,
):
    """F16."""
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        await add(runtime, schedule={"kind": "every", "every_s": 60})
        clock.advance(60)
        await ended(runtime)
        clock.jump_to(clock.now() + 8 * HOUR_MS)
        clock.advance(30)
        await ended(runtime, 3)
        found = await runs_of(runtime)

    assert [run.state for run in found] == [RunState.OK, RunState.MISSED, RunState.OK]
    assert found[1].count == 8 * 60 - 1
    assert found[2].scheduled_at == NOON + 60_000 + 8 * HOUR_MS


@pytest.mark.parametrize(
    ("eve", "due"),
    [
        ("2027-03-27T12:00+00:00", ["2027-03-28T01:00+00:00", "2027-03-29T00:30+00:00"]),
        ("2027-10-30T12:00+00:00", ["2027-10-31T00:30+00:00", "2027-11-01T01:30+00:00"]),
    ],
    ids=["spring", "autumn"],
)
async def test_half_past_two_is_once_on_the_day_that_clocks_change(
    settings_for: SettingsFor, eve: str, due: list[str]
):
    """F17."""
    clock = ManualClock(_ms(eve))
    schedule = {"kind": "cron", "expr": "30 2 * * *", "tz": "Europe/Berlin"}
    async with running(settings_for, talking(), clock) as runtime:
        await add(runtime, schedule=schedule)
        for number in range(2):
            await _go_to_next(runtime, clock)
            await ended(runtime, number + 1)
        found = await runs_of(runtime)

    assert [run.scheduled_at for run in found] == [_ms(at) for at in due]
    assert {run.state for run in found} == {RunState.OK}


def _ms(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1_000)


async def _go_to_next(runtime: Runtime, clock: ManualClock) -> None:
    job = await job_of(runtime)
    assert job is not None
    clock.advance((job["next_run_at"] - clock.now()) / 1_000)


async def test_a_slow_run_keeps_no_other_waiting(settings_for: SettingsFor):
    """Many jobs in as many sessions, and people who talk meanwhile."""
    clock, model = ManualClock(NOON), OneSlow()
    agents = [agent(model, budget=BudgetRules(turns_per_day=None))]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await _add_many(runtime, MANY)
        clock.advance(HOUR_S)
        await model.is_slow.wait()
        answers = [await runtime.ask("hello") for _ in range(5)]
        await happened(runtime, "automation.ok", MANY - 1)
        open_runs = [run for run in await runs_of(runtime) if run.ended_at is None]
        due = await runtime.store.read("SELECT COUNT(*) FROM timers WHERE kind = 'automation'")
        model.goes_on.set()
        await ended(runtime, MANY)

    assert answers == ["well"] * 5
    assert [run.job_name for run in open_runs] == ["job 7"]
    assert due == [(MANY,)]  # each has its next time


class OneSlow(Scripted):
    """Answers everybody at once, but one."""

    def __init__(self) -> None:
        super().__init__(talks)
        self.is_slow, self.goes_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        if any("job 7\n" in text for text in said(request)):
            self.is_slow.set()
            await self.goes_on.wait()
        async for piece in super().stream(request):
            yield piece


async def _add_many(runtime: Runtime, count: int) -> None:
    """Make as many jobs, each in a session of its own."""
    acts, now = runtime.services.automations, runtime.clock.now()

    def write(tx: Tx, numbers: Sequence[int]) -> None:
        for number in numbers:
            key = f"agent:main:dm:{number}"
            draft = Draft(session_key=key, text="-", trust=Trust.OPERATOR, owner=OPERATOR)
            runtime.services.intake.open_in(tx, draft)
            wish = Wish(
                name=f"job {number}",
                schedule=EverySchedule(every_s=HOUR_S),
                message="look",
                session_key=key,
            )
            acts.add_in(tx, acts.built(wish, ME, f"job_{number}", now), ME)

    for first in range(0, count, 100):
        numbers = range(first, min(count, first + 100))
        lanes = [f"agent:main:dm:{number}" for number in numbers]
        await write_in_lanes(runtime.store, lanes, lambda tx, numbers=numbers: write(tx, numbers))


async def test_two_nodes_file_one_run_for_each_occurrence(migrated_url: str):
    clock = ManualClock(NOON)
    settings = Settings(database=migrated_url, timezone="UTC")
    async with Runtime(agents=[agent(talking())], settings=settings, clock=clock) as runtime:
        await _add_many(runtime, 20)
    stores = [await open_postgres(migrated_url, clock=clock, exclusive=False) for _ in range(2)]
    keepers = [await _keeper(store, clock) for store in stores]
    for _ in range(10):
        clock.advance(HOUR_S)
        await asyncio.gather(*(keeper.fire_due() for keeper in keepers))
    runs = await stores[0].read(
        "SELECT job_id, scheduled_at, COUNT(*) FROM automation_runs GROUP BY job_id, scheduled_at"
    )
    had = await stores[0].read(
        "SELECT COUNT(*), COUNT(DISTINCT stimulus_id) FROM automation_runs "
        "WHERE stimulus_id IS NOT NULL"
    )
    stimuli = await stores[0].read("SELECT COUNT(*) FROM stimuli")
    for store in stores:
        await store.close()

    assert len(runs) == 20 * 10
    assert {count for _, _, count in runs} == {1}
    assert had == [(20, 20)]  # the first of each; the others overlap with it
    assert stimuli == [(20,)]


async def _keeper(store: Store, clock: ManualClock) -> Timekeeper:
    """Return what fires automations on one node."""
    node = Node(store, "node", clock)
    await node.bus.start()
    kinds = {"automation": TimerKind(node.scheduling.fire, node.scheduling.prepare)}
    return Timekeeper(
        store, node.bus, clock, kinds, lambda timer: (lane_rows.lock(timer.target), halts.ASKING)
    )
