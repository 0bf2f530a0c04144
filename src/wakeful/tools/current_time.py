"""What time it is, anywhere, by the runtime's own clock."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wakeful.tools.tool import Effect, ToolContext, tool
from wakeful.vocabulary.errors import InvalidInput

# Not strftime: its names follow the machine's language.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,3}")
_LONGEST_ZONE = 64


@tool(effect=Effect.READ)
def current_time(context: ToolContext, timezone: str = "UTC") -> str:
    """Tell the date, the time and the weekday in a time zone with an IANA name (Europe/Berlin)."""
    moment = datetime.fromtimestamp(context.clock.now() // 1000, _zone(timezone))
    return f"{moment.isoformat()} ({WEEKDAYS[moment.weekday()]}, {timezone})"


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # known without any zone files
    try:
        if len(name) <= _LONGEST_ZONE and _ZONE.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a folder or a stray file among the zones is no zone either
    raise InvalidInput(
        "timezone", f"no time zone is named {name[:80]!r}; use an IANA name such as 'Europe/Berlin'"
    )
