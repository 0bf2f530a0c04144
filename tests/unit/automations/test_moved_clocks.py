"""What cron means on days on which clocks are moved, in every zone."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.automations.schedules import between, next_after
from wakeful.vocabulary.automation import CronSchedule
from wakeful.vocabulary.record import Record

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
SINCE = round(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)
LONGEST_MS = 400 * DAY_MS
HOURS = (0, 4, 8, 12, 16, 20)


class Change(Record):
    """Clocks of a zone are moved."""

    zone: str
    at: int
    before: timedelta  # from UTC
    moved: timedelta  # forward, or back

    @property
    def old(self) -> datetime:
        """What clocks would show, had they not been moved."""
        return shown(self.at - MINUTE_MS, self.zone) + timedelta(minutes=1)


def shown(at: int, zone: str) -> datetime:
    return (
        datetime.fromtimestamp(at / 1000, UTC)
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None, fold=0)
    )


def offset(at: int, zone: str) -> timedelta:
    found = datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    assert found is not None
    return found


def changes(zone: str) -> Iterator[Change]:
    """Yield when clocks are moved within a year and a month."""
    for low, high in pairwise(range(SINCE, SINCE + LONGEST_MS, DAY_MS)):
        before, after = offset(low, zone), offset(high, zone)
        if before == after:
            continue
        while high - low > 1000:
            middle = (low + high) // 2000 * 1000
            low, high = (middle, high) if offset(middle, zone) == before else (low, middle)
        yield Change(zone=zone, at=high, before=before, moved=after - before)


@cache
def next_changes() -> list[Change]:
    """Return the next two changes of every zone."""
    found = [list(changes(zone))[:2] for zone in sorted(available_timezones())]
    return [change for of_zone in found for change in of_zone]


def kinds_of_changes() -> list[Change]:
    """Return one of all that move the same clocks at the same instant."""
    return list({(one.at, one.before, one.moved): one for one in next_changes()}.values())


def ours(expr: str, zone: str, after: int, until: int) -> list[int]:
    found = between(CronSchedule(expr=expr, tz=zone), after, until, newest=10_000)
    assert found.count == len(found.newest)
    return list(found.newest)


def by_cronsim(expr: str, zone: str, after: int, until: int) -> list[int]:
    """Return what another reader of cron makes of it; of times missed together, one."""
    begin = datetime.fromtimestamp(after / 1000, UTC).astimezone(ZoneInfo(zone))
    times = (round(due.timestamp() * 1000) for due in CronSim(expr, begin))
    return list(dict.fromkeys(takewhile(lambda due: due <= until, times)))


def by_croniter(expr: str, zone: str, after: int, until: int) -> list[int]:
    begin = datetime.fromtimestamp(after / 1000, UTC).astimezone(ZoneInfo(zone))
    reader = croniter(expr, begin, ret_type=datetime)
    times = (round(due.timestamp() * 1000) for due in iter(reader.get_next, None))
    return list(dict.fromkeys(takewhile(lambda due: due <= until, times)))


def around(change: Change, reach_ms: int = 2 * DAY_MS) -> tuple[int, int]:
    return change.at - reach_ms, change.at + reach_ms


def inside(change: Change) -> str:
    """Return a daily job at a time that the change leaves out, or repeats."""
    time_of_day = min(change.old, change.old + change.moved) + abs(change.moved) / 2
    return f"{time_of_day.minute} {time_of_day.hour} * * *"


def test_zones_whose_clocks_are_moved_are_found():
    moved = {change.zone for change in next_changes()}

    assert {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} <= moved
    assert "Asia/Tokyo" not in moved
    assert len(moved) > 100


@pytest.mark.parametrize("expr", [None, "0 0 * * *", "15,45 0-4 * * *", "5 1,2,3 * * 0,6"])
def test_fixed_times_are_those_of_another_reader_in_every_zone(expr: str | None):
    """F17: every daily job runs once a day, also where its time is left out or repeated."""
    for change in kinds_of_changes():
        words = expr or inside(change)

        assert ours(words, change.zone, *around(change)) == by_cronsim(
            words, change.zone, *around(change)
        ), (words, change)


@pytest.mark.parametrize("expr", ["*/30 * * * *", "0 * * * *", "10 * * * *", "*/7 * * * 0"])
def test_what_runs_every_hour_goes_by_elapsed_time_in_every_zone(expr: str):
    for change in kinds_of_changes():
        span = around(change, 4 * HOUR_MS)

        assert ours(expr, change.zone, *span) == by_cronsim(expr, change.zone, *span), change


@pytest.mark.parametrize("expr", [None, "0 * * * *", "30 5,17 * * *"])
def test_a_third_reader_agrees_where_it_is_right(expr: str | None):
    """F17: it knows gaps, but runs a daily job twice where its time is repeated."""
    for change in kinds_of_changes():
        words = expr or inside(change)
        theirs = by_croniter(words, change.zone, *around(change))
        if expr is None and change.moved < timedelta():
            theirs.remove(max(due for due in theirs if due < change.at + DAY_MS / 2))

        assert ours(words, change.zone, *around(change)) == theirs, (words, change)


def test_a_daily_job_runs_once_a_day_in_every_zone():
    """F17: no day is left out, no time comes twice."""
    for change in kinds_of_changes():
        found = ours(inside(change), change.zone, *around(change))

        odd = [later - due - DAY_MS for due, later in pairwise(found)]
        assert len(found) >= 3, change
        assert all(abs(ms) <= abs(change.moved) / timedelta(milliseconds=1) for ms in odd), change


DAYS = [
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", ["03:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "*/20 2 * * *", ["03:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "0 1,2,3,4 * * *", ["01:00+0100", "03:00+0200", "04:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "0 */4 * * *", [f"{h:02}:00+0{1 + (h > 2)}00" for h in HOURS]),
    ("Europe/Berlin", "2026-10-25", "30 2 * * *", ["02:30+0200"]),
    ("Europe/Berlin", "2026-10-25", "*/30 2 * * *", ["02:00+0200", "02:30+0200"]),
    ("Europe/Berlin", "2026-10-25", "0 1-3 * * *", ["01:00+0200", "02:00+0200", "03:00+0100"]),
    ("America/New_York", "2026-03-08", "30 2 * * *", ["03:00-0400"]),
    ("America/New_York", "2026-11-01", "30 1 * * *", ["01:30-0400"]),
    ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", ["02:30+1100"]),
    ("Australia/Lord_Howe", "2026-04-05", "45 1 * * *", ["01:45+1100"]),
    ("Africa/Casablanca", "2025-02-23", "30 2 * * *", ["02:30+0100"]),
    ("Africa/Casablanca", "2025-04-06", "30 2 * * *", ["03:00+0100"]),
    ("Asia/Tehran", "2022-03-22", "0 0 * * *", ["01:00+0430"]),
    ("Asia/Tehran", "2022-03-22", "0,30 0,1 * * *", ["01:00+0430", "01:30+0430"]),
    ("Asia/Tehran", "2022-09-21", "30 23 * * *", ["23:30+0430"]),
]


@pytest.mark.parametrize(("zone", "day", "expr", "times"), DAYS)
def test_days_on_which_clocks_are_moved(zone: str, day: str, expr: str, times: list[str]):
    """F17: a missing time counts right after the gap, of a repeated one the first counts."""
    assert times_of(zone, date.fromisoformat(day), expr) == times


@pytest.mark.parametrize(
    ("zone", "day", "count"),
    [
        ("Europe/Berlin", "2026-03-29", 46),
        ("Europe/Berlin", "2026-10-25", 50),
        ("America/New_York", "2026-03-08", 46),
        ("America/New_York", "2026-11-01", 50),
        ("Australia/Lord_Howe", "2026-04-05", 49),
        ("Australia/Lord_Howe", "2026-10-04", 47),
        ("Africa/Casablanca", "2025-02-23", 50),
        ("Africa/Casablanca", "2025-04-06", 46),
        ("Asia/Tehran", "2022-03-22", 46),
        ("Asia/Tehran", "2022-09-21", 50),
    ],
)
def test_every_half_hour_stays_every_half_hour(zone: str, day: str, count: int):
    """F17: what runs in every hour of a day does so in every hour that passes."""
    assert len(times_of(zone, date.fromisoformat(day), "*/30 * * * *")) == count


def test_times_left_out_on_both_sides_of_midnight_count_once():
    """F17: from 23:00 clocks are put to 00:00, where the next day's time is, too."""
    zone = "America/Scoresbysund"
    gap = instant("2027-03-28T01:00:00+00:00")

    assert ours("0,30 0,23 * * *", zone, gap - HOUR_MS // 2, gap + HOUR_MS // 4) == [gap]


def test_a_day_that_clocks_leave_once_more_has_begun():
    """F17: at 00:01 clocks were put back to 23:01; the midnight before that was the one."""
    zone = "America/St_Johns"
    midnight = instant("2010-11-07T00:00:00-02:30")
    until = midnight + HOUR_MS // 3

    assert shown(until, zone) == datetime(2010, 11, 6, 23, 20)
    assert ours("0 0 * * *", zone, midnight - HOUR_MS, until) == [midnight]
    assert ours("0 0 * * *", zone, until, until + 23 * HOUR_MS) == []


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def times_of(zone: str, day: date, expr: str) -> list[str]:
    """Return the times of a day, as its clocks show them."""
    known = ZoneInfo(zone)
    start, end = (
        round(datetime.combine(day + timedelta(days=days), time(), known).timestamp() * 1000)
        for days in (0, 1)
    )
    found = ours(expr, zone, start - 1, end - 1)
    return [f"{datetime.fromtimestamp(due / 1000, known):%H:%M%z}" for due in found]


ZONES = [
    "Africa/Cairo",  # goes without the hour after midnight
    "America/Havana",  # has that hour twice
    "America/Scoresbysund",  # the same with the hour before midnight
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Berlin",
]
minutes = st.sets(st.integers(0, 59), min_size=1, max_size=4)
hours = st.one_of(
    st.sets(st.integers(0, 4) | st.integers(22, 23), min_size=1, max_size=5),
    st.just(set(range(24))),
)
weekdays = st.one_of(st.just(set(range(7))), st.sets(st.integers(0, 6), min_size=1))


@settings(max_examples=60)
@given(
    zone=st.sampled_from(ZONES),
    minutes=minutes,
    hours=hours,
    weekdays=weekdays,
    change=st.integers(0, 1),
)
def test_every_minute_of_a_moved_day_is_judged_by_what_clocks_show(
    zone: str, minutes: set[int], hours: set[int], weekdays: set[int], change: int
):
    moved = [one for one in next_changes() if one.zone == zone]
    middle = moved[change].at if moved else SINCE
    words = [",".join(map(str, sorted(some))) for some in (minutes, hours, weekdays)]
    expr = f"{words[0]} {words[1]} * * {words[2]}"

    def fits(wall: datetime) -> bool:
        is_day = wall.isoweekday() % 7 in weekdays
        return wall.minute in minutes and wall.hour in hours and is_day

    after, until = middle - 30 * HOUR_MS, middle + 30 * HOUR_MS
    wanted: list[int] = []
    latest = shown(after - DAY_MS, zone) + timedelta(days=1)
    for at in range(after + MINUTE_MS, until + 1, MINUTE_MS):
        wall = shown(at, zone)
        new = int((wall - latest) / timedelta(minutes=1))
        if len(hours) == 24:
            is_due = fits(wall)
        else:
            is_due = any(fits(wall - timedelta(minutes=back)) for back in range(new))
        wanted += [at] * is_due
        latest = max(latest, wall)

    assert ours(expr, zone, after, until) == wanted
    assert (
        next_after(CronSchedule(expr=expr, tz=zone), after) == (wanted or [None])[0] or not wanted
    )
