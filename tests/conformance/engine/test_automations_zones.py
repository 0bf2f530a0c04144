"""Zone data that were changed: what is due is found anew, unless other data are newer than ours."""

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.jobs import HOUR_MS, NOON, add, ended, job_of, running, talking
from wakeful.automations import schedules
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock
from wakeful.vocabulary.automation import CronSchedule

DAILY = {"kind": "cron", "expr": "0 18 * * *", "tz": "Europe/Berlin"}


async def found_with(runtime: Runtime, version: str | None, next_at: int) -> None:
    """Make it look as if another process had found, with its data, when a job is due."""

    def write(tx: Tx) -> None:
        tx.run(
            "UPDATE automations SET zone_data = :version, next_run_at = :next_at",
            version=version,
            next_at=next_at,
        )
        tx.run("UPDATE timers SET due_at = :next_at WHERE kind = 'automation'", next_at=next_at)

    await runtime.store.transact(write)


@pytest.mark.parametrize(("version", "is_moved"), [("1999a", True), ("9999z", False)])
async def test_what_older_data_have_found_is_found_anew_at_the_start(
    lasting: SettingsFor, version: str, is_moved: bool
):
    clock, wrong = ManualClock(NOON), NOON + 30 * HOUR_MS
    async with running(lasting, talking(), clock) as runtime:
        await add(runtime, schedule=DAILY)
        before = await job_of(runtime)
        await found_with(runtime, version, wrong)
    async with running(lasting, talking(), clock) as runtime:
        after = await job_of(runtime)
        ((timer,),) = await runtime.store.read(
            "SELECT due_at FROM timers WHERE kind = 'automation'"
        )

    assert before is not None
    assert after is not None
    assert after["next_run_at"] == timer == (before["next_run_at"] if is_moved else wrong)


async def test_what_is_due_fires_and_is_not_moved(lasting: SettingsFor):
    clock = ManualClock(NOON)
    async with running(lasting, talking(), clock) as runtime:
        await add(runtime, schedule=DAILY)
        await found_with(runtime, "1999a", NOON - 1_000)
    async with running(lasting, talking(), clock) as runtime:
        (event,) = await ended(runtime)
        job = await job_of(runtime)

    berlin = CronSchedule(expr=DAILY["expr"], tz=DAILY["tz"])
    assert event.data["scheduled_at"] == NOON - 1_000
    assert job is not None
    assert job["next_run_at"] == schedules.next_after(berlin, NOON)
