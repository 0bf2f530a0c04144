"""The days of the user's zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from wakeful.gate.days import Days

HOUR_MS = 3_600_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "before", "hours"),
    [
        ("Europe/Berlin", "2026-03-28T23:00", 23),  # the clocks go forward
        ("Europe/Berlin", "2026-10-24T22:00", 25),  # and back
        ("Europe/Berlin", "2026-06-01T22:00", 24),
        ("America/Sao_Paulo", "2018-11-04T03:00", 23),  # midnight itself does not exist
    ],
)
def test_a_day_is_as_long_as_its_zone_makes_it(zone: str, before: str, hours: int):
    days = Days(ZoneInfo(zone))
    day = days.of(ms(before))

    assert days.begin(day) == ms(before)
    assert days.begin(day + 1) - days.begin(day) == hours * HOUR_MS


def test_every_instant_lies_between_the_beginning_of_its_day_and_the_next():
    days = Days(ZoneInfo("Australia/Lord_Howe"))
    start = ms("2026-01-01T00:00")
    for hour in range(0, 366 * 24, 5):
        now = start + hour * HOUR_MS + 1
        day = days.of(now)
        assert days.begin(day) <= now < days.begin(day + 1)


def test_another_zone_has_other_days():
    days = Days(ZoneInfo("UTC"))
    now = ms("2026-06-01T23:00")
    before = days.of(now)

    days.follow(ZoneInfo("Asia/Tokyo"))

    assert days.of(now) == before + 1
    assert timedelta(milliseconds=now - days.begin(before + 1)) == timedelta(hours=8)
