"""Times and durations as people read them: in their zone, with the zone; "in 47 s"."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from wakeful.vocabulary import wall
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import next_time
from wakeful.vocabulary.spans import is_span, parse_span

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def zone_named(name: str) -> tzinfo | None:
    """Return the user's zone; None is the machine's."""
    return ZoneInfo(name) if name else None


def moment(value: str | int) -> datetime:
    """Return an instant given as RFC 3339 or as milliseconds since 1970."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(value)


def coming(text: str, field: str, now_ms: int, zone: tzinfo | None) -> str:
    """Return the instant that is so long from now, that clocks show next, or that is written."""
    if is_span(text):
        return _written(now_ms + parse_span(text, field), field)
    if text[1:2] == ":" or text[2:3] == ":":
        return _written(next_time(text, now_ms, zone, field), field)
    return _written(_read(text, field, zone, "7:00, 2h or 2026-01-01T07:00"), field)


def past(text: str, field: str, now_ms: int, zone: tzinfo | None) -> str:
    """Return the instant that was so long ago, or that is written."""
    if is_span(text):
        return _written(now_ms - parse_span(text, field), field)
    return _written(_read(text, field, zone, "24h, 2026-01-01 or 2026-01-01T07:00"), field)


def shown(value: str | int | None, zone: tzinfo | None) -> str:
    """Return an instant in a zone, with the zone."""
    if value is None:
        return "–"
    local = moment(value).astimezone(zone)
    name = local.tzname() or ""
    return f"{local:%Y-%m-%d %H:%M:%S} {name}".rstrip()


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units."""
    whole = max(0, round(seconds))
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return _two(whole, MINUTE_S, "min", 1, "s")
    if whole < DAY_S:
        return _two(whole, HOUR_S, "h", MINUTE_S, "min")
    return _two(whole, DAY_S, "d", HOUR_S, "h")


def relative(value: str | int, now_ms: int) -> str:
    """Return when something is or was: "in 47 s", "3 min ago"."""
    left_s = moment(value).timestamp() - now_ms / 1000
    return f"in {duration(left_s)}" if left_s > 0 else f"{duration(-left_s)} ago"


def money(cost: float) -> str:
    """Return a cost; prices are in US dollars."""
    return f"${cost:.4f}"


def size(count: int) -> str:
    """Return a number of bytes."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _read(text: str, field: str, zone: tzinfo | None, such_as: str) -> int:
    try:
        found = datetime.fromisoformat(text)
        return wall.moment(found, zone) if found.tzinfo is None else round(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(field, f"must be a time such as {such_as}, not {text[:40]!r}") from None


def _written(ms: int, field: str) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(field, "is too far away") from None


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    head = f"{whole // large} {large_name}"
    return f"{head} {rest} {small_name}" if rest else head
