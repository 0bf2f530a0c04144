"""The days of the user's zone, by their numbers."""

from datetime import date, datetime, time, tzinfo

from wakeful.vocabulary import wall


class Days:
    """Tells which day an instant belongs to, and when a day begins."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.zone = zone
        self._known = (0, 0, 0)  # a day, its beginning and its end

    def follow(self, zone: tzinfo | None) -> None:
        """Count by the days of another zone from now on."""
        self.zone, self._known = zone, (0, 0, 0)

    def of(self, now: int) -> int:
        """Return the number of the day that an instant lies in."""
        day, begin, end = self._known
        if not begin <= now < end:
            day = wall.local(now, self.zone).date().toordinal()
            self._known = (day, self.begin(day), self.begin(day + 1))
        return day

    def begin(self, day: int) -> int:
        """Return the instant at which a day begins."""
        return wall.moment(datetime.combine(date.fromordinal(day), time()), self.zone)
