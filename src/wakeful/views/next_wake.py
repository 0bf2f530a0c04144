"""What will really wake an agent next: a pure function of what is due and of what keeps it away."""

from collections.abc import Callable, Sequence
from datetime import tzinfo

from wakeful.triggers.heartbeat_rows import due_after
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.record import Record

MOST_LOOKED_AT = 50  # heartbeats in a row that something keeps away: longer, and there is none

ClosedUntil = Callable[[int], int | None]  # until when an instant is closed; None: it is open


class Beat(Record):
    """When an agent's heart beats next, and how long the session sleeps in which it does."""

    due_at: int | None
    rules: HeartbeatRules
    asleep_until: int | None


def next_wake(
    ready: Sequence[int | None],
    due: Sequence[int | None],
    beat: Beat,
    quiet_until: ClosedUntil,
    zone: tzinfo | None,
) -> int | None:
    """Return when an agent wakes next, None if nothing is due.

    What is ready in its lanes wakes it then; what is due in quiet hours, after them. A heartbeat
    that its hours, a sleep or quiet hours will skip is none.
    """
    found = [at for at in ready if at is not None]
    found += [quiet_until(at) or at for at in due if at is not None]
    if beat.due_at is not None and beat.rules.every_ms:
        closed = (quiet_until, _asleep(beat.asleep_until), _inactive(beat.rules.active_hours, zone))
        at = _next_beat(beat.due_at, beat.rules.every_ms, closed)
        found += [] if at is None else [at]
    return min(found, default=None)


def _next_beat(due_at: int, every_ms: int, closed: Sequence[ClosedUntil]) -> int | None:
    at = due_at
    for _ in range(MOST_LOOKED_AT):
        until = max((end for of in closed if (end := of(at)) is not None), default=None)
        if until is None:
            return at
        at = due_after(due_at, every_ms, until - 1)
    return None


def _asleep(until: int | None) -> ClosedUntil:
    return lambda at: until if until is not None and at < until else None


def _inactive(hours: DailyHours | None, zone: tzinfo | None) -> ClosedUntil:
    def closed(at: int) -> int | None:
        start = at if hours is None else hours.span(at, zone).start
        return start if start > at else None

    return closed
