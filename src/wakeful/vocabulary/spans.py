"""Spans of time as people write them: `90s`, `30m`, `2h`, `1d`."""

import re

from wakeful.vocabulary.errors import InvalidInput

_SPAN = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)")
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def is_span(text: str) -> bool:
    return _SPAN.fullmatch(text.strip().lower()) is not None


def parse_span(text: str, field: str) -> int:
    """Return milliseconds."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        rule = f"must be a number with a unit, such as 90s, 30m, 2h or 1d, not {text[:40]!r}"
        raise InvalidInput(field, rule)
    return int(found[1]) * _MS[found[2]]


def format_span(ms: int) -> str:
    """Return a span as people say it, in its two largest units: `2h 5m`."""
    parts: list[str] = []
    left = max(0, ms) // 1_000
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
