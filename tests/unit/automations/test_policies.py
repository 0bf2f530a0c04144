"""What becomes of occurrences that were missed, and of those that failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.automations.policies import Start, fallen_due, is_disabled_by, retry_at
from wakeful.automations.schedules import between
from wakeful.vocabulary.automation import (
    AtSchedule,
    CronSchedule,
    EverySchedule,
    Missed,
    MissedWithin,
    RunCause,
)

HOUR_MS = 3_600_000
SECONDLY = EverySchedule(every_s=1, anchor="1970-01-01T00:00:00+00:00")
HOURLY = EverySchedule(every_s=3600, anchor="1970-01-01T00:00:00+00:00")
DAY = 20_000 * 24 * HOUR_MS

policies = st.sampled_from(["skip", "once", "all"]) | st.builds(
    MissedWithin, within_s=st.integers(0, 100_000)
)


@pytest.mark.parametrize(
    ("policy", "hours_late", "running", "missed"),
    [
        ("skip", 5.5, [], 6),
        ("once", 5.5, [5], 5),
        ("all", 5.5, [0, 1, 2, 3, 4, 5], 0),
        (MissedWithin(within_s=1800), 5.5, [5], 5),
        (MissedWithin(within_s=1799), 5.5, [], 6),
        (MissedWithin(within_s=21600), 5.5, [5], 5),
        ("skip", 5.01, [5], 5),  # the newest is 36 s late, which is no lateness
        ("once", 5.01, [5], 5),
        (MissedWithin(within_s=0), 5.01, [5], 5),
        ("skip", 0.01, [0], 0),
        ("skip", 0, [0], 0),
    ],
)
def test_a_policy_says_how_many_of_the_newest_run(
    policy: Missed, hours_late: float, running: list[int], missed: int
):
    due = fallen_due(HOURLY, policy, DAY, DAY + round(hours_late * HOUR_MS))

    assert [(start.scheduled_at - DAY) // HOUR_MS for start in due.starts] == running
    assert due.missed == missed


def test_what_is_a_minute_late_is_not_late():
    assert fallen_due(HOURLY, "skip", DAY, DAY + 60_000).missed == 0
    assert fallen_due(HOURLY, "skip", DAY, DAY + 60_001).missed == 1


def test_six_hours_of_seconds_are_a_hundred_runs_and_one_count():
    now = DAY + 6 * HOUR_MS - 1000

    due = fallen_due(SECONDLY, "all", DAY, now)

    assert [start.scheduled_at for start in due.starts] == list(range(now - 99_000, now + 1, 1000))
    assert due.missed == 21_500
    assert due.newest_missed == now - 100_000


def test_those_that_catch_up_begin_five_seconds_apart():
    due = fallen_due(HOURLY, "all", DAY, DAY + 2 * HOUR_MS + 10_000)

    now = DAY + 2 * HOUR_MS + 10_000
    assert due.starts == (
        Start(scheduled_at=DAY, not_before=now, cause=RunCause.CATCH_UP),
        Start(scheduled_at=DAY + HOUR_MS, not_before=now + 5_000, cause=RunCause.CATCH_UP),
        Start(scheduled_at=DAY + 2 * HOUR_MS, not_before=now + 10_000, cause=RunCause.SCHEDULE),
    )


def test_whoever_catches_up_waits_for_those_that_do_so_already():
    now = DAY + HOUR_MS // 2

    (late,) = fallen_due(HOURLY, "once", DAY, now, catch_up_from=now + 40_000).starts
    (early,) = fallen_due(HOURLY, "once", DAY, now, catch_up_from=now - 40_000).starts
    (on_time,) = fallen_due(HOURLY, "once", DAY, DAY + 5, catch_up_from=now).starts

    assert (late.not_before, early.not_before) == (now + 40_000, now)
    assert (on_time.not_before, on_time.cause) == (DAY + 5, RunCause.SCHEDULE)


def test_a_busy_moment_leaves_nothing_out():
    due = fallen_due(SECONDLY, "once", DAY, DAY + 30_000)

    assert [start.scheduled_at for start in due.starts] == list(range(DAY, DAY + 30_001, 1000))
    assert {start.not_before for start in due.starts} == {DAY + 30_000}


def test_what_is_pending_counts_though_newer_zone_data_would_not_have_it():
    """F17: an instant that was stored stays an occurrence."""
    daily = CronSchedule(expr="0 12 * * *", tz="UTC")
    pending = DAY + 11 * HOUR_MS

    due = fallen_due(daily, "all", pending, DAY + 13 * HOUR_MS)

    assert [start.scheduled_at for start in due.starts] == [pending, DAY + 12 * HOUR_MS]


def test_what_happens_once_is_caught_up_once():
    once = AtSchedule(at="2026-06-02T09:00:00+00:00")
    pending = between(once, 0, DAY * 2).newest[0]

    assert len(fallen_due(once, "once", pending, pending + HOUR_MS).starts) == 1
    assert fallen_due(once, "skip", pending, pending + HOUR_MS).missed == 1


@given(policy=policies, every_s=st.integers(1, 5000), late_ms=st.integers(0, 10**9))
def test_nothing_that_fell_due_is_forgotten(policy: Missed, every_s: int, late_ms: int):
    """I12: each occurrence runs, or is counted as missed."""
    schedule = EverySchedule(every_s=every_s, anchor="1970-01-01T00:00:00+00:00")
    pending = DAY // (every_s * 1000) * every_s * 1000
    now = pending + late_ms

    due = fallen_due(schedule, policy, pending, now)

    ran = [start.scheduled_at for start in due.starts]
    assert len(ran) + due.missed == late_ms // (every_s * 1000) + 1
    assert len(ran) <= 100
    assert [start.not_before for start in due.starts] == sorted(s.not_before for s in due.starts)
    newest = pending + late_ms // (every_s * 1000) * every_s * 1000
    assert ran == [newest - back * every_s * 1000 for back in reversed(range(len(ran)))]
    left = newest - len(ran) * every_s * 1000
    assert due.newest_missed == (left if due.missed else None)


@pytest.mark.parametrize(
    ("failures", "pause_s"),
    [(1, 30), (2, 60), (3, 300), (4, 900), (5, 3600), (6, None), (0, None)],
)
def test_a_failed_occurrence_runs_again_after_a_growing_pause(failures: int, pause_s: int | None):
    found = retry_at(failures, DAY, None)

    assert found == (None if pause_s is None else DAY + pause_s * 1000)


def test_a_failed_occurrence_gives_way_to_the_next():
    assert retry_at(1, DAY, DAY + 30_001) == DAY + 30_000
    assert retry_at(1, DAY, DAY + 30_000) is None
    assert retry_at(1, DAY, DAY - 1) is None


def test_ten_failures_in_a_row_are_the_last():
    assert [is_disabled_by(failures) for failures in (0, 9, 10, 11)] == [False, False, True, True]
