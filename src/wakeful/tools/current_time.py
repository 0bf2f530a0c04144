"""What time it is, anywhere, by the runtime's own clock."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from wakeful.tools.tool import Effect, ToolContext, tool
from wakeful.vocabulary.errors import InvalidInput

# Not strftime: its names follow the machine's language.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,3}")
_LONGEST_ZONE = 64


@tool(effect=Effect.READ)
def current_time(context: ToolContext, timezone: str | None = None) -> str:
    """Tell date, time and weekday: the user's, or those of an IANA zone (Europe/Berlin) or city."""
    is_machines = timezone is None and not context.timezone
    zone = None if is_machines else _zone(context.timezone if timezone is None else timezone)
    moment = datetime.fromtimestamp(context.clock.now() // 1000, UTC).astimezone(zone)
    return f"{moment.isoformat()} ({WEEKDAYS[moment.weekday()]}, {zone or moment.tzname()})"


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # known without any zone files
    try:
        if len(name) <= _LONGEST_ZONE and _ZONE.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a folder or a stray file among the zones is no zone either
    if city := _zone_of_city(name):
        return ZoneInfo(city)
    raise InvalidInput(
        "timezone", f"no time zone is named {name[:80]!r}; use an IANA name such as 'Europe/Berlin'"
    )


def _zone_of_city(name: str) -> str | None:
    """Return the zone that is named after a city; people say Tokyo, not Asia/Tokyo."""
    city = name[:_LONGEST_ZONE].replace(" ", "_").casefold()
    zones = sorted(available_timezones())
    return next((zone for zone in zones if zone.casefold().endswith(f"/{city}")), None)
