"""When a conversation is over by itself, also on the days when clocks are moved."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.intake.reset_times import DAILY, IDLE, ResetTimes, last_time

BERLIN = ZoneInfo("Europe/Berlin")  # 2026-03-29 has no 02:00 to 03:00, 2026-10-25 has it twice
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Tehran"]
DAILY_AT_4 = ResetTimes(daily=time(4), zone=BERLIN)


def berlin(text: str, *, fold: int = 0) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize("day", ["2026-03-28", "2026-03-29", "2026-03-30", "2026-10-25"])
def test_a_day_ends_at_four_in_the_morning(day: str):
    spoke = berlin(f"{day}T03:59")

    assert DAILY_AT_4.due(spoke, berlin(f"{day}T03:59:59")) is None
    assert DAILY_AT_4.due(spoke, berlin(f"{day}T04:00")) == DAILY
    assert DAILY_AT_4.due(berlin(f"{day}T04:00"), berlin(f"{day}T23:59")) is None


def test_a_time_that_does_not_exist_is_right_after_the_gap():
    rule = ResetTimes(daily=time(2, 30), zone=BERLIN)
    before = berlin("2026-03-29T01:59:59")

    assert rule.due(before, berlin("2026-03-29T03:00")) == DAILY
    assert rule.due(berlin("2026-03-29T03:00"), berlin("2026-03-29T23:00")) is None
    assert last_time(time(2, 30), BERLIN, berlin("2026-03-29T12:00")) == berlin("2026-03-29T03:00")


def test_a_time_that_comes_twice_counts_once():
    rule = ResetTimes(daily=time(2, 30), zone=BERLIN)
    first, second = (berlin("2026-10-25T02:30", fold=fold) for fold in (0, 1))

    assert second - first == 3_600_000
    assert rule.due(first - 1, first) == DAILY
    assert rule.due(first, second + 60_000) is None


def test_idle_counts_from_the_last_word_of_a_person():
    rule = ResetTimes(idle_minutes=60)

    assert rule.due(0, 3_600_000) is None
    assert rule.due(0, 3_600_001) == IDLE


def test_nothing_is_over_where_nobody_spoke_or_no_rule_is_on():
    always = ResetTimes(daily=time(4), idle_minutes=1, zone=BERLIN)

    assert always.due(None, 2**40) is None
    assert ResetTimes().due(0, 2**40) is None


@given(
    st.sampled_from(ZONES),
    st.times(timezones=st.none()).map(lambda at: at.replace(second=0, microsecond=0)),
    st.datetimes(min_value=datetime(2010, 1, 1), max_value=datetime(2027, 1, 1)),
)
def test_the_last_time_is_the_one_that_looking_at_every_minute_finds(
    zone: str, at: time, moment: datetime
):
    """F17: over every change of every zone."""
    where, now = ZoneInfo(zone), round(moment.replace(tzinfo=UTC).timestamp()) * 1000

    found = last_time(at, where, now)

    assert found == by_the_minute(at, where, now)


def by_the_minute(at: time, zone: ZoneInfo, now: int) -> int:
    """Walk through the minutes of the days before, and note when each day first showed the time."""
    reached: dict[date, int] = {}
    start = now // 60_000 - 3 * 24 * 60
    last_day: date | None = None
    for minute in range(start, now // 60_000 + 1):
        wall = datetime.fromtimestamp(minute * 60, UTC).astimezone(zone)
        if wall.time() >= at and wall.date() not in reached and last_day is not None:
            reached[wall.date()] = minute * 60_000
        if last_day is not None and wall.date() > last_day + timedelta(days=1):
            reached.setdefault(last_day + timedelta(days=1), minute * 60_000)  # a day left out
        elif last_day is not None and wall.date() > last_day:
            reached.setdefault(last_day, minute * 60_000)  # the gap went over midnight
        last_day = wall.date()
    return max(reached.values())
