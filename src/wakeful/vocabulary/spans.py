"""Spans of time as people write and say them: `90s`, `30m`, `2 hours`, `1 day 12 h`."""

import re
from collections.abc import Sequence
from functools import lru_cache

from wakeful.vocabulary.errors import InvalidInput

_UNITS = {
    "w": ("week", "weeks"),
    "d": ("day", "days"),
    "h": ("hr", "hrs", "hour", "hours"),
    "m": ("min", "mins", "minute", "minutes"),
    "s": ("sec", "secs", "second", "seconds"),
    "ms": ("millisecond", "milliseconds"),
}
_MS = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
_OF_WORD = {word: _MS[unit] for unit, words in _UNITS.items() for word in (unit, *words)}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,3})?|an?\b)\s*([a-z]+)(?:\s*,\s*|\s+and\s+|\s*)")
_LONGEST_TEXT = 60
_MOST_WORDS = 8


def is_span(text: str) -> bool:
    return _length(text) is not None


def parse_span(text: str, field: str) -> int:
    """Return milliseconds."""
    found = _length(text)
    if found is None:
        raise InvalidInput(
            field,
            f"must be a number with a unit, such as 90s, 30m, 2h, 1d or 2 hours, not {text[:40]!r}",
        )
    return found


def leading_span(words: Sequence[str], field: str) -> tuple[int, list[str]]:
    """Return the span that words begin with, in milliseconds, and the words after it."""
    for count in range(min(len(words), _MOST_WORDS), 0, -1):
        if is_span(" ".join(words[:count])):
            return parse_span(" ".join(words[:count]), field), list(words[count:])
    return parse_span(" ".join(words[:2]), field), []


def _length(text: str) -> int | None:
    """Return a span in milliseconds, or None."""
    said = text.strip().lower()
    return _sum(said) if 0 < len(said) <= _LONGEST_TEXT else None


@lru_cache(maxsize=1024)  # the same few spans of the settings are asked for with every timer
def _sum(said: str) -> int | None:
    """Add up parts that each have a smaller unit than the one before."""
    total, position, smallest = 0.0, 0, None
    while position < len(said):
        part = _PART.match(said, position)
        unit = None if part is None else _OF_WORD.get(part[2])
        if part is None or unit is None or (smallest is not None and unit >= smallest):
            return None
        total += (1 if part[1].startswith("a") else float(part[1])) * unit
        position, smallest = part.end(), unit
    return round(total)


def format_span(ms: int) -> str:
    """Return a span as people say it, in its two largest units: `2h 5m`."""
    parts: list[str] = []
    left = max(0, ms) // 1_000
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
