"""When an automation is due: a pure function of its schedule, in milliseconds since 1970.

All but `checked` must be given a schedule that `checked` has returned.
"""

from datetime import datetime, tzinfo
from typing import assert_never

import msgspec

from wakeful.automations.cron import checked_expression, cron_times
from wakeful.automations.zones import data_version, name_of, zone_named
from wakeful.vocabulary import wall
from wakeful.vocabulary.automation import AtSchedule, CronSchedule, EverySchedule, Schedule
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

MOST_NAMED = 100
LONGEST_INTERVAL_S = 10 * 366 * 86_400
FARTHEST_MS = 50 * 366 * 86_400_000


class Occurrences(Record):
    """How often something is due in a span of time, and when at last, oldest first."""

    count: int
    newest: tuple[int, ...]


def checked(
    schedule: Schedule, now_ms: int, zone: tzinfo | None, field: str = "schedule"
) -> Schedule:
    """Return a schedule that means the same everywhere and for ever, or refuse it.

    Times get their distance from UTC, intervals what they are counted from, fields of cron the
    name of their zone; `zone` is the user's, None the machine's.
    """
    match schedule:
        case AtSchedule():
            return _checked_at(schedule, now_ms, zone, field)
        case EverySchedule():
            return _checked_every(schedule, now_ms, zone, field)
        case CronSchedule():
            return _checked_cron(schedule, now_ms, zone, field)
        case _:
            assert_never(schedule)


def next_after(schedule: Schedule, after_ms: int) -> int | None:
    """Return when it is due first after an instant; None: never again."""
    match schedule:
        case AtSchedule(at=at):
            due = _instant(at)
            return due if due > after_ms else None
        case EverySchedule():
            anchor, step = _rhythm(schedule)
            return max(anchor, anchor + ((after_ms - anchor) // step + 1) * step)
        case CronSchedule(expr=expr, tz=tz):
            return cron_times(expr, tz or "").next_after(after_ms)
        case _:
            assert_never(schedule)


def upcoming(schedule: Schedule, after_ms: int, count: int) -> list[int]:
    """Return when it is due next after an instant, so many times at most."""
    found: list[int] = []
    while len(found) < count and (due := next_after(schedule, after_ms)) is not None:
        found.append(due)
        after_ms = due
    return found


def between(
    schedule: Schedule, after_ms: int, until_ms: int, newest: int = MOST_NAMED
) -> Occurrences:
    """Count how often it is due after an instant and until another; name the newest.

    What that costs does not grow with their number: for an interval it is nothing, for cron some
    microseconds per day.
    """
    match schedule:
        case AtSchedule(at=at):
            due = _instant(at)
            found = [due] if after_ms < due <= until_ms else []
            return Occurrences(count=len(found), newest=tuple(found[:newest]))
        case EverySchedule():
            _, step = _rhythm(schedule)
            first = next_after(schedule, after_ms)
            count = 0 if first is None else max(0, (until_ms - first) // step + 1)
            last = (first or 0) + (count - 1) * step
            named = range(min(newest, count) - 1, -1, -1)
            return Occurrences(count=count, newest=tuple(last - back * step for back in named))
        case CronSchedule(expr=expr, tz=tz):
            count, times = cron_times(expr, tz or "").between(after_ms, until_ms, newest)
            return Occurrences(count=count, newest=tuple(times))
        case _:
            assert_never(schedule)


def zone_data_version(schedule: Schedule) -> str | None:
    """Return the version of the zone data that decide when it is due; None: none do, or no telling.

    Only cron asks them again and again; everything else was settled when it was checked.
    """
    return data_version(schedule.tz or "") if isinstance(schedule, CronSchedule) else None


def _checked_at(schedule: AtSchedule, now_ms: int, zone: tzinfo | None, field: str) -> AtSchedule:
    due = _read(schedule.at, zone, f"{field}.at")
    if due <= now_ms:
        raise InvalidInput(f"{field}.at", f"must lie in the future, not at {schedule.at[:40]!r}")
    if due > now_ms + FARTHEST_MS:
        raise InvalidInput(f"{field}.at", "is too far away")
    return AtSchedule(at=_written(due, zone))


def _checked_every(
    schedule: EverySchedule, now_ms: int, zone: tzinfo | None, field: str
) -> EverySchedule:
    if not 1 <= schedule.every_s <= LONGEST_INTERVAL_S:
        rule = f"must be from 1 to {LONGEST_INTERVAL_S}, not {schedule.every_s}"
        raise InvalidInput(f"{field}.every_s", rule)
    if schedule.anchor is None:
        return msgspec.structs.replace(schedule, anchor=_written(now_ms, zone))
    anchor = _read(schedule.anchor, zone, f"{field}.anchor")
    if not abs(anchor - now_ms) <= FARTHEST_MS:
        raise InvalidInput(f"{field}.anchor", "is too far away")
    return msgspec.structs.replace(schedule, anchor=_written(anchor, zone))


def _checked_cron(
    schedule: CronSchedule, now_ms: int, zone: tzinfo | None, field: str
) -> CronSchedule:
    expr = checked_expression(schedule.expr, f"{field}.expr")
    if schedule.tz is None:
        tz = name_of(zone, f"{field}.tz")
    else:
        tz = zone_named(schedule.tz, f"{field}.tz").key
    found = CronSchedule(expr=expr, tz=tz)
    if next_after(found, now_ms) is None:
        raise InvalidInput(f"{field}.expr", f"never fires: {schedule.expr[:60]!r}")
    return found


def _rhythm(schedule: EverySchedule) -> tuple[int, int]:
    """Return what an interval is counted from, and its length."""
    return _instant(schedule.anchor or ""), schedule.every_s * 1_000


def _read(text: str, zone: tzinfo | None, field: str) -> int:
    """Return the instant that is written; without a distance from UTC, on the clocks of a zone."""
    try:
        found = datetime.fromisoformat(text)
        return wall.moment(found, zone) if found.tzinfo is None else _instant(text)
    except (ValueError, OverflowError, OSError):
        rule = f"must be a time such as 2026-01-01T07:00, not {text[:40]!r}"
        raise InvalidInput(field, rule) from None


def _instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _written(ms: int, zone: tzinfo | None) -> str:
    return wall.local(ms, zone).isoformat()
