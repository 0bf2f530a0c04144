"""Times are shown in the user's zone, durations in two units."""

import pytest

from wakeful.cli.times import duration, relative, shown, size, zone_named

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
