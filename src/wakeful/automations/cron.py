"""Cron: the instants at which the clocks of a zone show what five fields ask for.

Where clocks are moved, a time that a day does not have counts once, right after the gap, and of one
that it has twice the first counts. What runs in all 24 hours of its days goes by elapsed time
instead: every half hour stays every half hour.

Of days and weekdays both must fit where one of the two begins with a star, else either will do, as
in the cron of Debian.
"""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from wakeful.automations.zones import zone_named
from wakeful.vocabulary import wall
from wakeful.vocabulary.errors import InvalidInput

FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
LONGEST_EXPRESSION = 500
HORIZON_YEARS = 50  # the 29th of February is a Monday, say, at least once in 40 years

# What crontab knows, except for @reboot, which is no time.
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_ONE_DAY = timedelta(days=1)
_LAST_YEAR = 9_990
_ANY_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)
_ODD_DAYS = 16  # two a year: those on which clocks are moved
_KEPT = 1_024


class CronTimes:
    """What five fields mean in a zone; they were checked."""

    def __init__(self, fields: CronSim, zone: ZoneInfo) -> None:
        self._zone = zone
        self._fields = fields
        self._is_by_the_clock = len(fields.hours) < 24
        minutes = sorted(fields.minutes)
        times = (h * _HOUR_MS + m * _MINUTE_MS for h in sorted(fields.hours) for m in minutes)
        self._offsets = array("q", times)  # up to 1,440, and there are many of us
        self._odd_days: dict[date, list[int]] = {}

    def next_after(self, after: int) -> int | None:
        """Return the first instant after one."""
        for day in self._days(wall.local(after, self._zone).date()):
            base, offsets = self._of_day(day)
            position = bisect_right(offsets, after - base)
            if position < len(offsets):
                return base + offsets[position]
        return None

    def between(self, after: int, until: int, newest: int) -> tuple[int, list[int]]:
        """Count the instants after one and not after another; name the last of them."""
        count, found = 0, deque[int](maxlen=newest)
        # Clocks put back over midnight show the day before once more: hence one day beyond.
        last = wall.local(until, self._zone).date() + _ONE_DAY
        for day in self._days(wall.local(after, self._zone).date()):
            if day > last:
                break
            base, offsets = self._of_day(day)
            start, end = bisect_right(offsets, after - base), bisect_right(offsets, until - base)
            if start < end:
                count += end - start
                found.extend(base + offset for offset in offsets[max(start, end - newest) : end])
                # Over a gap across midnight, two days have their missing times at one instant.
                after = base + offsets[end - 1]
        return count, list(found)

    def _days(self, day: date) -> Iterator[date]:
        """Yield the days that fit, from a day on."""
        last_year = min(day.year + HORIZON_YEARS, _LAST_YEAR)
        while day.year <= last_year:
            if day.month not in self._fields.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            if self._fields.match_day(day):
                yield day
            day += _ONE_DAY

    def _of_day(self, day: date) -> tuple[int, Sequence[int]]:
        """Return an instant, and the distances from it of all instants of a day."""
        start, end = self._midnight(day), self._midnight(day + _ONE_DAY)
        if end - start == _DAY_MS:
            return start, self._offsets
        found = self._odd_days.get(day)
        if found is None:
            found = self._of_odd_day(day, start, end)
            if len(self._odd_days) >= _ODD_DAYS:
                self._odd_days.clear()
            self._odd_days[day] = found
        return 0, found

    def _of_odd_day(self, day: date, start: int, end: int) -> list[int]:
        if not self._is_by_the_clock:
            minutes = self._fields.minutes
            instants = range(start, end, _MINUTE_MS)
            return [at for at in instants if wall.local(at, self._zone).minute in minutes]
        midnight = datetime.combine(day, time())
        walls = (midnight + timedelta(milliseconds=offset) for offset in self._offsets)
        return sorted({wall.moment(shown, self._zone) for shown in walls})

    def _midnight(self, day: date) -> int:
        return wall.moment(datetime.combine(day, time()), self._zone)


@lru_cache(_KEPT)
def cron_times(expression: str, zone: str) -> CronTimes:
    """Return what an expression that was checked means in a zone."""
    return CronTimes(CronSim(expression, _ANY_MOMENT), zone_named(zone, "tz"))


def checked_expression(expression: str, field: str) -> str:
    """Return the five fields with one space between them, or refuse what cannot be read.

    What is short for five fields, such as `@daily`, is written out.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidInput(field, f"must have at most {LONGEST_EXPRESSION} characters")
    parts = _SHORT.get(expression.strip().lower(), expression).split()
    if len(parts) == len(FIELDS) + 1:
        rule = f"must be five fields, without the seconds: {' '.join(FIELDS)}"
        raise InvalidInput(field, f"{rule}, {_not(expression)}")
    if len(parts) != len(FIELDS):
        raise InvalidInput(field, f"must be five fields ({' '.join(FIELDS)}), {_not(expression)}")
    name = _unreadable(parts)
    if name == "day-of-month" and _unreadable([*parts[:3], "*", parts[4]]) is None:
        raise InvalidInput(field, f"never fires: {expression[:60]!r}")
    if name:
        raise InvalidInput(field, f"the {name} must be one that cron knows, {_not(expression)}")
    return " ".join(parts)


def _unreadable(parts: list[str]) -> str | None:
    """Return the name of the first field that cannot be read."""
    try:
        CronSim(" ".join(parts), _ANY_MOMENT)
    except CronSimError as error:
        return str(error).removeprefix("Bad ")
    return None


def _not(expression: str) -> str:
    return f"not {expression[:60]!r}"
