"""What wakes an agent next: nothing counts of which it is known that it will wake nobody."""

from zoneinfo import ZoneInfo

import pytest

from wakeful.views.next_wake import Beat, next_wake
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours

HOUR = 3_600_000
MIDNIGHT = 1_790_000_000_000 // 86_400_000 * 86_400_000
UTC = ZoneInfo("UTC")
HALF = MIDNIGHT + HOUR // 2
DAYTIME = DailyHours(start="08:00", end="22:00")


def woken(
    beat: Beat,
    ready: int | None = None,
    due: int | None = None,
    quiet: tuple[int, int] = (0, 0),
) -> int | None:
    start, end = quiet
    return next_wake([ready], [due], beat, lambda at: end if start <= at < end else None, UTC)


def beating(
    due_at: int | None = HALF, asleep_until: int | None = None, hours: DailyHours | None = None
) -> Beat:
    rules = HeartbeatRules(every="1h", active_hours=hours)
    return Beat(due_at=due_at, rules=rules, asleep_until=asleep_until)


def test_the_first_of_what_is_ready_due_and_beats_counts():
    assert woken(beating()) == HALF
    assert woken(beating(), due=MIDNIGHT + 5) == MIDNIGHT + 5
    assert woken(beating(), ready=MIDNIGHT + 3, due=MIDNIGHT + 5) == MIDNIGHT + 3
    assert woken(beating(due_at=None)) is None


@pytest.mark.parametrize(
    ("beat", "at"),
    [
        (beating(asleep_until=MIDNIGHT + 3 * HOUR), HALF + 3 * HOUR),
        (beating(asleep_until=HALF), HALF),
        (beating(hours=DAYTIME), HALF + 8 * HOUR),
        (beating(hours=DAYTIME, asleep_until=MIDNIGHT + 23 * HOUR), HALF + 32 * HOUR),
    ],
)
def test_a_heartbeat_that_will_be_skipped_is_none(beat: Beat, at: int):
    assert woken(beat) == at


def test_what_is_due_in_quiet_hours_wakes_after_them():
    night = (MIDNIGHT, MIDNIGHT + 7 * HOUR)

    assert woken(beating(), quiet=night) == HALF + 7 * HOUR
    assert woken(beating(), due=MIDNIGHT + 5, quiet=night) == MIDNIGHT + 7 * HOUR
    assert woken(beating(), ready=MIDNIGHT + 3, quiet=night) == MIDNIGHT + 3


def test_a_heartbeat_that_never_comes_is_none():
    always_quiet = (0, 2**53)

    assert woken(beating(), quiet=always_quiet) == HALF + ((2**53 - 1 - HALF) // HOUR + 1) * HOUR
    off = Beat(due_at=HALF, rules=HeartbeatRules(every=0), asleep_until=None)
    assert woken(off) is None
