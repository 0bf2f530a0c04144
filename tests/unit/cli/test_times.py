"""Times are shown in the user's zone, durations in two units."""

from zoneinfo import ZoneInfo

import pytest

from wakeful.cli.times import coming, duration, past, relative, shown, size, zone_named
from wakeful.vocabulary.errors import InvalidInput

NOON = 1_800_000_000_000  # 2027-01-15 08:00 UTC


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (47, "47 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (3_661, "1 h 1 min"),
        (86_400, "1 d"),
        (100_000, "1 d 3 h"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, told: str):
    assert duration(seconds) == told


def test_an_instant_is_told_by_its_distance():
    assert relative(NOON + 47_000, NOON) == "in 47 s"
    assert relative(NOON - 180_000, NOON) == "3 min ago"


def test_an_instant_is_shown_in_the_zone_with_the_zone():
    assert shown(NOON, zone_named("Europe/Berlin")) == "2027-01-15 09:00:00 CET"
    assert shown("2027-01-15T08:00:00+00:00", zone_named("UTC")) == "2027-01-15 08:00:00 UTC"
    assert shown(None, None) == "–"


@pytest.mark.parametrize(
    ("count", "told"),
    [(5, "5 B"), (2048, "2.0 KiB"), (5 * 1024**2, "5.0 MiB"), (2**40, "1024.0 GiB")],
)
def test_a_size_has_one_unit(count: int, told: str):
    assert size(count) == told


BERLIN = ZoneInfo("Europe/Berlin")  # where it is 09:00


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2h", "2027-01-15T10:00:00+00:00"),
        ("10:00", "2027-01-15T09:00:00+00:00"),
        ("7:00", "2027-01-16T06:00:00+00:00"),
        ("2027-02-01T07:00", "2027-02-01T06:00:00+00:00"),
        ("2027-02-01T07:00Z", "2027-02-01T07:00:00+00:00"),
        ("2027-02-01", "2027-01-31T23:00:00+00:00"),
    ],
)
def test_a_time_to_come_is_read_as_people_type_it(text: str, found: str):
    assert coming(text, "until", NOON, BERLIN) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("24h", "2027-01-14T08:00:00+00:00"),
        ("2027-01-01", "2026-12-31T23:00:00+00:00"),
        ("2027-01-01T00:00Z", "2027-01-01T00:00:00+00:00"),
    ],
)
def test_a_time_gone_by_is_read_as_people_type_it(text: str, found: str):
    assert past(text, "since", NOON, BERLIN) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tomorrow", "until: must be a time such as 7:00, 2h or 2026-01-01T07:00, not 'tomorrow'"),
        ("7", "until: must be a time such as 7:00"),
        ("25:00", "until: must be a time from 00:00 to 23:59, not '25:00'"),
        ("999999999d", "until: is too far away"),
    ],
)
def test_what_is_no_time_is_refused_with_the_field_and_what_would_be_one(text: str, told: str):
    with pytest.raises(InvalidInput) as refused:
        coming(text, "until", NOON, BERLIN)

    assert str(refused.value).startswith(told)
    with pytest.raises(InvalidInput, match="since: must be a time such as 24h, 2026-01-01"):
        past("yesterday", "since", NOON, BERLIN)
