"""Hours of the day, by what clocks show: over midnight, to 24:00, and where clocks are moved."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import DailyHours, checked

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    ("start", "end", "inside", "outside"),
    [
        ("08:00", "22:00", ["08:00:00", "21:59:59"], ["07:59:59", "22:00:00"]),
        ("22:00", "06:00", ["22:00:00", "00:00:00", "05:59:59"], ["06:00:00", "21:59:59"]),
        ("18:00", "24:00", ["18:00:00", "23:59:59"], ["00:00:00", "17:59:59"]),
        ("09:00", "09:00", ["09:00:00", "08:59:59", "00:00:00"], []),
        ("00:00", "24:00", ["00:00:00", "23:59:59"], []),
    ],
)
def test_the_start_belongs_to_them_and_the_end_does_not(
    start: str, end: str, inside: list[str], outside: list[str]
):
    hours = DailyHours(start=start, end=end)

    assert all(hours.cover(at(f"2026-06-01T{one}"), BERLIN) for one in inside)
    assert not any(hours.cover(at(f"2026-06-01T{one}"), BERLIN) for one in outside)


def test_the_zone_is_the_users_or_one_that_is_named():
    noon = at("2026-06-01T12:00:00")

    assert DailyHours(start="12:00", end="13:00").cover(noon, BERLIN)
    assert not DailyHours(start="12:00", end="13:00").cover(noon, ZoneInfo("Asia/Tokyo"))
    assert DailyHours(start="19:00", end="20:00", timezone="Asia/Tokyo").cover(noon, BERLIN)


def test_where_clocks_are_moved_counts_what_they_show():
    early = DailyHours(start="02:00", end="03:00")
    before = at("2026-03-29T01:59:59")  # the next second is 03:00

    assert not early.cover(before, BERLIN)
    assert not early.cover(before + 1000, BERLIN)
    assert early.cover(at("2026-10-25T02:30:00"), BERLIN)
    assert early.cover(at("2026-10-25T02:30:00", fold=1), BERLIN)


@pytest.mark.parametrize(
    ("hours", "field"),
    [
        (DailyHours(start="25:00", end="08:00"), "start"),
        (DailyHours(start="24:00", end="08:00"), "start"),
        (DailyHours(start="8:00", end="09:00"), "start"),
        (DailyHours(start="08:00", end="24:30"), "end"),
        (DailyHours(start="08:00", end="22:00", timezone="Mars/Base"), "timezone"),
    ],
)
def test_what_no_clock_shows_is_refused(hours: DailyHours, field: str):
    with pytest.raises(InvalidInput) as refused:
        checked(hours, "active_hours")

    assert refused.value.field == f"active_hours.{field}"
