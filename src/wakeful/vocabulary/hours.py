"""Hours of the day: from one time on the clocks of a zone to another."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wakeful.vocabulary import wall
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

USER = "user"  # the zone that the settings name
LOCAL = "local"  # the machine's
_DAY_MINUTES = 24 * 60
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


class DailyHours(Record):
    """A part of every day: the start belongs to it, the end does not.

    It may go over midnight; from a time to the same time it is always.
    """

    start: str
    end: str
    timezone: str = USER

    def cover(self, now: int, user_zone: tzinfo | None) -> bool:
        """Tell whether an instant lies within these hours, by what clocks show then."""
        start, end = minutes(self.start), minutes(self.end)
        local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone(self.timezone, user_zone))
        at = local.hour * 60 + local.minute
        if start == end % _DAY_MINUTES:
            return True
        return start <= at < end if start < end else at >= start or at < end

    def end_after(self, now: int, user_zone: tzinfo | None) -> int:
        """Return when these hours end next, by the clocks of their zone."""
        own, at = zone(self.timezone, user_zone), timedelta(minutes=minutes(self.end))
        today = datetime.combine(wall.local(now, own).date(), time())
        ends = (wall.moment(today + timedelta(days=days) + at, own) for days in (-1, 0, 1, 2))
        return next(end for end in ends if end > now)


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
