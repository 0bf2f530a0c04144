"""Hours of the day, by what clocks show: over midnight, to 24:00, and where clocks are moved."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import DailyHours, Span, checked, next_time

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


def test_hours_that_end_in_the_hour_that_clocks_show_twice_end_once():
    hours = DailyHours(start="22:00", end="02:30")
    night = Span(start=at("2026-10-24T22:00:00"), end=at("2026-10-25T02:30:00"))

    assert hours.span(at("2026-10-25T02:29:59"), BERLIN) == night
    assert not hours.cover(at("2026-10-25T02:30:00"), BERLIN)
    assert not hours.cover(at("2026-10-25T02:15:00", fold=1), BERLIN)
    assert hours.span(night.end, BERLIN).start == at("2026-10-25T22:00:00")


@pytest.mark.parametrize(
    ("start", "end", "now", "span"),
    [
        ("22:00", "07:00", "2026-06-01T23:30", ("2026-06-01T22:00", "2026-06-02T07:00")),
        ("22:00", "07:00", "2026-06-02T06:59", ("2026-06-01T22:00", "2026-06-02T07:00")),
        ("22:00", "07:00", "2026-06-02T07:00", ("2026-06-02T22:00", "2026-06-03T07:00")),
        ("13:00", "14:00", "2026-06-01T09:00", ("2026-06-01T13:00", "2026-06-01T14:00")),
        ("18:00", "24:00", "2026-06-01T23:59", ("2026-06-01T18:00", "2026-06-02T00:00")),
        ("09:00", "09:00", "2026-06-01T08:00", ("2026-05-31T09:00", "2026-06-01T09:00")),
        ("09:00", "09:00", "2026-06-01T09:00", ("2026-06-01T09:00", "2026-06-02T09:00")),
        ("22:00", "07:00", "2026-03-28T23:30", ("2026-03-28T22:00", "2026-03-29T07:00")),
        ("22:00", "02:30", "2026-03-28T23:30", ("2026-03-28T22:00", "2026-03-29T03:00")),
        ("02:10", "02:50", "2026-03-29T01:00", ("2026-03-30T02:10", "2026-03-30T02:50")),
        ("02:30", "07:00", "2026-10-25T01:00", ("2026-10-25T02:30", "2026-10-25T07:00")),
    ],
)
def test_the_hours_of_an_instant_are_those_it_lies_in_or_the_next(
    start: str, end: str, now: str, span: tuple[str, str]
):
    found = DailyHours(start=start, end=end).span(at(now), BERLIN)

    assert found == Span(start=at(span[0]), end=at(span[1]))


@pytest.mark.parametrize(
    ("text", "now", "found"),
    [
        ("07:00", "2026-06-01T23:30", "2026-06-02T07:00"),
        ("07:00", "2026-06-01T06:59", "2026-06-01T07:00"),
        ("07:00", "2026-06-01T07:00", "2026-06-02T07:00"),
        ("7:00", "2026-06-01T07:00", "2026-06-02T07:00"),
        ("02:30", "2026-03-29T01:00", "2026-03-29T03:00"),
        ("02:30", "2026-10-25T02:45", "2026-10-26T02:30"),
    ],
)
def test_a_time_is_the_next_one_that_clocks_show(text: str, now: str, found: str):
    assert next_time(text, at(now), BERLIN) == at(found)


@pytest.mark.parametrize("text", ["", ":00", "7:0", "24:00", "07:60", "noon", "07:00 "])
def test_a_time_that_no_clock_shows_is_refused(text: str):
    with pytest.raises(InvalidInput, match="must be a time from 00:00 to 23:59"):
        next_time(text, at("2026-06-01T12:00"), BERLIN)


@pytest.mark.parametrize(
    ("hours", "field"),
    [
        (DailyHours(start="25:00", end="08:00"), "start"),
        (DailyHours(start="24:00", end="08:00"), "start"),
        (DailyHours(start="8", end="09:00"), "start"),
        (DailyHours(start="08:00", end="24:30"), "end"),
        (DailyHours(start="08:00", end="22:00", timezone="Mars/Base"), "timezone"),
    ],
)
def test_what_no_clock_shows_is_refused(hours: DailyHours, field: str):
    with pytest.raises(InvalidInput) as refused:
        checked(hours, "active_hours")

    assert refused.value.field == f"active_hours.{field}"
