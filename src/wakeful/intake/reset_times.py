"""When a conversation is over by itself: a pure rule on when a person spoke last."""

from datetime import datetime, time, timedelta, tzinfo

from wakeful.vocabulary import wall
from wakeful.vocabulary.record import Record

DAILY = "daily"
IDLE = "idle"
MINUTE_MS = 60_000


class ResetTimes(Record):
    """The rules that an operator switched on; None is off."""

    daily: time | None = None  # in the user's zone
    idle_minutes: int | None = None
    zone: tzinfo | None = None  # None: the machine's

    def due(self, last_human_at: int | None, now: int) -> str | None:
        """Return the rule by which a message that comes now begins anew, if there is one.

        Whoever never spoke in a session has no conversation there that could be over.
        """
        if last_human_at is None:
            return None
        if self.daily is not None and last_human_at < last_time(self.daily, self.zone, now):
            return DAILY
        if self.idle_minutes is None:
            return None
        is_idle = now - last_human_at > self.idle_minutes * MINUTE_MS
        return IDLE if is_idle else None


NO_RESETS = ResetTimes()


def last_time(at: time, zone: tzinfo | None, now: int) -> int:
    """Return when it was last this time of the day, in milliseconds.

    A time that a day does not have counts right after the gap; of one that it has twice the
    first counts.
    """
    today = wall.local(now, zone).date()
    return next(
        moment
        for days in range(3)  # a zone may leave out a whole day
        if (moment := wall.moment(datetime.combine(today - timedelta(days=days), at), zone)) <= now
    )
