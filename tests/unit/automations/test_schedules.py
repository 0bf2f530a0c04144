"""When a schedule is due, and which schedules there are none of."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.automations.schedules import (
    Occurrences,
    between,
    checked,
    next_after,
    upcoming,
    zone_data_version,
)
from wakeful.vocabulary.automation import AtSchedule, CronSchedule, EverySchedule, Schedule
from wakeful.vocabulary.errors import InvalidInput

BERLIN = ZoneInfo("Europe/Berlin")
NOW = round(datetime(2026, 6, 1, 12, tzinfo=BERLIN).timestamp() * 1000)
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS

instants = st.integers(NOW, NOW + 2 * YEAR_MS)
expressions = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "30 2 * * *", "*/20 1-3 * * 6,0", "0 0 1 * *", "5 4 29 2 *"]
)
intervals = st.builds(
    EverySchedule,
    every_s=st.integers(1, 100_000),
    anchor=instants.map(lambda ms: datetime.fromtimestamp(ms / 1000, BERLIN).isoformat()),
)
schedules = st.one_of(
    expressions.map(lambda expr: CronSchedule(expr=expr, tz="Europe/Berlin")), intervals
)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1000)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (AtSchedule(at="2026-06-02T09:00"), AtSchedule(at="2026-06-02T09:00:00+02:00")),
        (AtSchedule(at="2026-12-02"), AtSchedule(at="2026-12-02T00:00:00+01:00")),
        (AtSchedule(at="2026-06-02T09:00Z"), AtSchedule(at="2026-06-02T11:00:00+02:00")),
        (
            EverySchedule(every_s=60),
            EverySchedule(every_s=60, anchor="2026-06-01T12:00:00+02:00"),
        ),
        (
            EverySchedule(every_s=60, anchor="2026-01-01T00:00:07"),
            EverySchedule(every_s=60, anchor="2026-01-01T00:00:07+01:00"),
        ),
        (
            CronSchedule(expr=" 0  9 * * mon-fri\n"),
            CronSchedule(expr="0 9 * * mon-fri", tz="Europe/Berlin"),
        ),
        (
            CronSchedule(expr="0 9 * * *", tz="Asia/Tokyo"),
            CronSchedule(expr="0 9 * * *", tz="Asia/Tokyo"),
        ),
    ],
)
def test_what_is_stored_says_all_that_it_depends_on(given: Schedule, stored: Schedule):
    assert checked(given, NOW, BERLIN) == stored
    assert checked(stored, NOW, ZoneInfo("America/New_York")) == msgspec.structs.replace(
        stored, **_times_of(stored, ZoneInfo("America/New_York"))
    )


@pytest.mark.parametrize(
    ("short", "fields"),
    [
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_what_is_short_for_five_fields_is_written_out(short: str, fields: str):
    stored = checked(CronSchedule(expr=short), NOW, BERLIN)

    assert stored == CronSchedule(expr=fields, tz="Europe/Berlin")


def _times_of(schedule: Schedule, zone: ZoneInfo) -> dict[str, Any]:
    """Return the times of a schedule as clocks elsewhere show the same instants."""
    names = {"at", "anchor"} & set(schedule.__struct_fields__)
    return {
        name: datetime.fromisoformat(getattr(schedule, name)).astimezone(zone).isoformat()
        for name in names
    }


@pytest.mark.parametrize(
    ("schedule", "field", "rule"),
    [
        (AtSchedule(at="2026-06-01T11:59"), "at", "must lie in the future"),
        (AtSchedule(at="2026-06-01T12:00"), "at", "must lie in the future"),
        (AtSchedule(at="2026-06-01T13:00+05:00"), "at", "must lie in the future"),
        (AtSchedule(at="tomorrow"), "at", "must be a time such as"),
        (AtSchedule(at="09:00"), "at", "must be a time such as"),
        (AtSchedule(at=""), "at", "must be a time such as"),
        (AtSchedule(at="2326-06-01"), "at", "too far away"),
        (AtSchedule(at="9999-12-31T23:59:59"), "at", "too far away"),
        (AtSchedule(at="0001-01-01"), "at", "must"),
        (EverySchedule(every_s=0), "every_s", "must be from 1 to"),
        (EverySchedule(every_s=-60), "every_s", "must be from 1 to"),
        (EverySchedule(every_s=10**15), "every_s", "must be from 1 to"),
        (EverySchedule(every_s=1, anchor="soon"), "anchor", "must be a time such as"),
        (EverySchedule(every_s=1, anchor="1026-01-01"), "anchor", "too far away"),
        (CronSchedule(expr=""), "expr", "must be five fields"),
        (CronSchedule(expr="* * * *"), "expr", "must be five fields"),
        (CronSchedule(expr="0 * * * * *"), "expr", "must be five fields, without the seconds"),
        (CronSchedule(expr="@reboot"), "expr", "must be five fields"),
        (CronSchedule(expr="60 * * * *"), "expr", "the minute must be one"),
        (CronSchedule(expr="* 24 * * *"), "expr", "the hour must be one"),
        (CronSchedule(expr="* * 0 * *"), "expr", "the day-of-month must be one"),
        (CronSchedule(expr="* * * 13 *"), "expr", "the month must be one"),
        (CronSchedule(expr="* * * * 8"), "expr", "the day-of-week must be one"),
        (CronSchedule(expr="*/0 * * * *"), "expr", "the minute must be one"),
        (CronSchedule(expr="x * * * *"), "expr", "the minute must be one"),
        (CronSchedule(expr="²L * * * ²L"), "expr", "the minute must be one"),
        (CronSchedule(expr="1," * 300 + "1 * * * *"), "expr", "must have at most 500 characters"),
        (CronSchedule(expr="9" * 400 + " * * * *"), "expr", "the minute must be one"),
        (CronSchedule(expr="0 0 30 2 *"), "expr", "never fires"),
        (CronSchedule(expr="0 0 31 4,6,9,11 *"), "expr", "never fires"),
        (CronSchedule(expr="0 0 * 2 MON#5", tz="Mars/Base"), "tz", "must be an IANA name"),
        (CronSchedule(expr="0 0 * * *", tz=""), "tz", "must be an IANA name"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused_by_its_field(
    schedule: Schedule, field: str, rule: str
):
    with pytest.raises(InvalidInput) as caught:
        checked(schedule, NOW, BERLIN)

    assert caught.value.field == f"schedule.{field}"
    assert rule in caught.value.rule
    assert len(str(caught.value)) < 250


def test_a_zone_belongs_to_cron_alone():
    for body in ('{"kind":"every","every_s":60,"tz":"UTC"}', '{"kind":"at","at":"x","tz":"UTC"}'):
        with pytest.raises(msgspec.ValidationError, match="tz"):
            msgspec.json.decode(body, type=Schedule)


@pytest.mark.parametrize(
    ("expr", "days"),
    [
        ("0 9 * * 1-5", ["06-02", "06-03", "06-04", "06-05", "06-08"]),
        ("0 9 13 * 5", ["06-05", "06-12", "06-13", "06-19", "06-26"]),  # either
        ("0 9 */10 * 1", ["08-31", "09-21", "12-21", "01-11", "02-01"]),  # both: a star begins one
        ("0 9 L * *", ["06-30", "07-31", "08-31", "09-30", "10-31"]),
        ("0 9 * * 7", ["06-07", "06-14", "06-21", "06-28", "07-05"]),
    ],
)
def test_days_are_those_of_cron(expr: str, days: list[str]):
    schedule = checked(CronSchedule(expr=expr), NOW, BERLIN)

    found = upcoming(schedule, NOW, 5)

    assert [f"{datetime.fromtimestamp(due / 1000, BERLIN):%m-%d}" for due in found] == days


def test_a_day_that_comes_once_in_decades_is_found():
    schedule = checked(CronSchedule(expr="0 0 * 2 MON#5"), NOW, BERLIN)

    assert upcoming(schedule, NOW, 2) == [at("2044-02-29T00:00"), at("2072-02-29T00:00")]


def test_once_is_once():
    schedule = checked(AtSchedule(at="2026-06-02T09:00"), NOW, BERLIN)
    due = at("2026-06-02T09:00")

    assert upcoming(schedule, NOW, 5) == [due]
    assert next_after(schedule, due) is None
    assert between(schedule, NOW, due) == Occurrences(count=1, newest=(due,))
    assert between(schedule, due, due + 1) == Occurrences(count=0, newest=())


def test_an_interval_begins_with_its_anchor():
    schedule = checked(EverySchedule(every_s=60, anchor="2026-06-03T00:00:00"), NOW, BERLIN)

    begin = at("2026-06-03T00:00")
    assert upcoming(schedule, NOW, 2) == [begin, begin + 60_000]
    assert between(schedule, NOW, begin - 1).count == 0


def test_an_interval_from_now_is_due_after_one_interval():
    schedule = checked(EverySchedule(every_s=90), NOW + 7, BERLIN)

    assert upcoming(schedule, NOW + 7, 2) == [NOW + 90_007, NOW + 180_007]


def test_a_second_missed_for_six_hours_costs_nothing():
    schedule = checked(EverySchedule(every_s=1), NOW, BERLIN)
    until = NOW + 6 * 3_600_000

    found = between(schedule, NOW, until)

    assert found.count == 21_600
    assert found.newest == tuple(range(until - 99_000, until + 1, 1000))
    assert between(schedule, NOW, NOW + 10**15).count == 10**12


def test_a_year_of_minutes_is_counted_by_days():
    schedule = checked(CronSchedule(expr="* * * * *"), NOW, BERLIN)
    until = NOW + YEAR_MS

    found = between(schedule, NOW, until)

    assert found.count == YEAR_MS // 60_000
    assert found.newest == tuple(range(until - 99 * 60_000, until + 1, 60_000))


@given(schedule=schedules, after=instants)
def test_what_is_next_comes_later(schedule: Schedule, after: int):
    times = upcoming(schedule, after, 20)

    assert len(times) == 20
    assert all(one < next_one for one, next_one in zip([after, *times], times, strict=False))


@given(schedule=schedules, after=instants, span=st.integers(0, 3 * DAY_MS))
def test_nothing_lies_between_an_instant_and_the_next(schedule: Schedule, after: int, span: int):
    first = next_after(schedule, after)
    assert first is not None

    for earlier in (first - 1, after, after + min(span, first - 1 - after)):
        assert next_after(schedule, earlier) == first


@given(schedule=schedules, after=instants, length=st.integers(0, 4 * DAY_MS))
def test_all_between_two_instants_is_what_comes_one_by_one(
    schedule: Schedule, after: int, length: int
):
    if isinstance(schedule, EverySchedule):
        length = min(length, 500 * schedule.every_s * 1000)
    until = after + length
    one_by_one: list[int] = []
    due = next_after(schedule, after)
    while due is not None and due <= until:
        one_by_one.append(due)
        due = next_after(schedule, due)

    assert between(schedule, after, until) == Occurrences(
        count=len(one_by_one), newest=tuple(one_by_one[-100:])
    )
    assert between(schedule, after, until, newest=0).newest == ()


@given(schedule=intervals, after=instants)
def test_an_interval_keeps_its_phase_wherever_one_looks_from(schedule: EverySchedule, after: int):
    due = next_after(schedule, after)

    anchor = round(datetime.fromisoformat(schedule.anchor or "").timestamp() * 1000)
    assert due is not None
    assert (due - anchor) % (schedule.every_s * 1000) == 0
    assert due <= max(anchor, after + schedule.every_s * 1000)


@given(schedule=schedules, now=instants)
def test_checking_once_is_enough(schedule: Schedule, now: int):
    once = checked(schedule, now, BERLIN)

    assert checked(once, now, BERLIN) == once
    assert upcoming(once, now, 3) == upcoming(schedule, now, 3)
    assert msgspec.json.decode(msgspec.json.encode(once), type=Schedule) == once


@given(expr=st.text(alphabet="0123456789*/,-L#W ?@MONJA²\t", max_size=30))
def test_whatever_is_written_is_read_or_refused(expr: str):
    try:
        found = checked(CronSchedule(expr=expr), NOW, BERLIN)
    except InvalidInput as refused:
        assert refused.field == "schedule.expr"
    else:
        assert len(upcoming(found, NOW, 2)) == 2


def test_only_cron_depends_on_zone_data():
    assert zone_data_version(checked(CronSchedule(expr="0 0 * * *"), NOW, BERLIN))
    assert zone_data_version(checked(EverySchedule(every_s=1), NOW, BERLIN)) is None
    assert zone_data_version(checked(AtSchedule(at="2026-06-02"), NOW, BERLIN)) is None
