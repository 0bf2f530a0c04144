"""Times and durations as people read them: in their zone, with the zone; "in 47 s"."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from wakeful.vocabulary.hours import next_time

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def zone_named(name: str) -> tzinfo | None:
    """Return the user's zone; None is the machine's."""
    return ZoneInfo(name) if name else None


def moment(value: str | int) -> datetime:
    """Return an instant given as RFC 3339 or as milliseconds since 1970."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(value)


def instant_of(text: str, now_ms: int, zone: tzinfo | None) -> str:
    """Return the instant that a time of the day means next, or that is written out."""
    if text[2:3] == ":":
        return datetime.fromtimestamp(next_time(text, now_ms, zone) / 1000, UTC).isoformat()
    return text


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


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    head = f"{whole // large} {large_name}"
    return f"{head} {rest} {small_name}" if rest else head
