"""Hours of the day: from one time on the clocks of a zone to another."""

import re
from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wakeful.vocabulary import wall
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

USER = "user"  # the zone that the settings name
LOCAL = "local"  # the machine's
_DAY_MINUTES = 24 * 60
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")  # as people type it: 7:00, too


class Span(Record):
    """From one instant to another; the first belongs to it, the second does not."""

    start: int
    end: int


class DailyHours(Record):
    """A part of every day: the start belongs to it, the end does not.

    It may go over midnight; from a time to the same time it is always. Each day has it once, also
    where clocks are moved: a time that a day has twice counts as the first, one that it does not
    have is right after the gap.
    """

    start: str
    end: str
    timezone: str = USER

    def cover(self, now: int, user_zone: tzinfo | None) -> bool:
        """Tell whether an instant lies within these hours."""
        return self.span(now, user_zone).start <= now

    def span(self, now: int, user_zone: tzinfo | None) -> Span:
        """Return the hours that an instant lies in, or else those that come next."""
        own = zone(self.timezone, user_zone)
        today = datetime.combine(wall.local(now, own).date(), time())
        start, end = minutes(self.start), minutes(self.end)
        end += _DAY_MINUTES if end <= start else 0
        days = (today + timedelta(days=number) for number in (-1, 0, 1, 2, 3))
        spans = (Span(start=_moment(day, start, own), end=_moment(day, end, own)) for day in days)
        # A day on which all of it falls into a gap does not have it.
        return next(span for span in spans if span.end > max(now, span.start))


def next_time(text: str, now: int, user_zone: tzinfo | None, field: str = "time") -> int:
    """Return when the user's clocks show a time next."""
    if not _TIME.fullmatch(text):
        raise InvalidInput(field, f"must be a time from 00:00 to 23:59, not {text[:40]!r}")
    today = datetime.combine(wall.local(now, user_zone).date(), time())
    days = (today + timedelta(days=number) for number in (0, 1, 2))
    return next(at for day in days if (at := _moment(day, minutes(text), user_zone)) > now)


def _moment(day: datetime, after: int, own: tzinfo | None) -> int:
    return wall.moment(day + timedelta(minutes=after), own)


def minutes(text: str) -> int:
    """Return how far into the day a time is that was checked."""
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest)


def zone(name: str, user_zone: tzinfo | None) -> tzinfo | None:
    """Return the zone that a name means; None: the machine's."""
    if name == USER:
        return user_zone
    return None if name == LOCAL else ZoneInfo(name)


def checked(hours: DailyHours, field: str) -> DailyHours:
    """Return the hours, or refuse what no clock shows and what no zone is called."""
    if not _TIME.fullmatch(hours.start):
        rule = f"must be a time from 00:00 to 23:59, not {hours.start[:40]!r}"
        raise InvalidInput(f"{field}.start", rule)
    if hours.end != "24:00" and not _TIME.fullmatch(hours.end):
        rule = f"must be a time from 00:00 to 24:00, not {hours.end[:40]!r}"
        raise InvalidInput(f"{field}.end", rule)
    try:
        zone(hours.timezone, None)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        rule = (
            f"must be {USER}, {LOCAL} or an IANA name such as Europe/Berlin, "
            f"not {hours.timezone[:60]!r}"
        )
        raise InvalidInput(f"{field}.timezone", rule) from None
    return hours
