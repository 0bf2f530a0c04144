"""The words of `/queue` (a mode, `debounce:2s`, `cap:20`, `drop:old`), alone or in a message."""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from wakeful.vocabulary import queueing
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, Drop, Mode, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.spans import parse_span

Word = TypeVar("Word", bound=StrEnum)

# There are four things to say; a message full of them must not cost more than to file it.
MOST_WORDS = 8  # that are read after one `/queue`
MOST_TIMES = 8  # that `/queue` is looked at in one message

_QUEUE = re.compile(r"(?<!\S)/queue(?!\S)", re.IGNORECASE)
_NEXT_WORD = re.compile(r"\s+(\S+)")


class Inline(Record):
    """A message without the `/queue` words in it, and what they say."""

    text: str
    queue: QueueOverrides


def parsed(rest: str, queue: QueueOverrides = NO_OVERRIDES) -> QueueOverrides:
    """Read `collect debounce:2s cap:5 drop:old` over the settings so far."""
    for word in rest.split():
        queue = _with(queue, word)
    return queue


def is_alone(rest: str) -> bool:
    """Tell whether what follows `/queue` at the start of a message is all meant for it.

    It is if every word is an argument, or if already the first one is none: then the sender is
    told which there are. Else the rest is a message, and what it begins with holds for it alone.
    """
    words = rest.split(maxsplit=MOST_WORDS)
    return not words or _arguments(words) in (0, len(words))


def cut_out(text: str) -> Inline:
    """Take `/queue` with its arguments out of a message; without arguments it is text."""
    queue, kept, position = NO_OVERRIDES, "", 0
    for found in islice(_QUEUE.finditer(text), MOST_TIMES):
        if found.start() < position:
            continue  # inside of what was cut
        end, words = found.end(), list[str]()
        while len(words) < MOST_WORDS and (word := _next_argument(text, end)):
            words.append(word[1])
            end = word.end()
        if words:
            queue = parsed(" ".join(words), queue)
            kept, position = kept + text[position : found.start()].rstrip(), end
    if not position:
        return Inline(text=text, queue=NO_OVERRIDES)
    return Inline(text=(kept + text[position:]).strip(), queue=queue)


def _next_argument(text: str, start: int) -> re.Match[str] | None:
    """Return the next word if it is an argument."""
    word = _NEXT_WORD.match(text, start)
    return word if word is not None and _arguments([word[1]]) else None


def _arguments(words: Sequence[str]) -> int:
    """Count the words, from the first on, that are arguments."""
    for count, word in enumerate(words):
        try:
            queueing.checked(_with(NO_OVERRIDES, word))
        except InvalidInput:
            return count
    return len(words)


def _with(queue: QueueOverrides, word: str) -> QueueOverrides:
    name, colon, value = word.lower().partition(":")
    if not colon:
        return replace(queue, mode=_one_of(Mode, name, "mode"))
    if name == "drop":
        return replace(queue, drop=_one_of(Drop, value, "drop"))
    if name == "debounce":
        return replace(queue, debounce_ms=_milliseconds(value))
    if name == "cap" and value.isascii() and value.isdecimal() and len(value) < 6:
        return replace(queue, cap=int(value))
    raise InvalidInput(
        "queue", f"takes a mode, debounce:2s, cap:20 and drop:old, not {word[:40]!r}"
    )


def _one_of(kind: type[Word], word: str, field: str) -> Word:
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidInput(field, f"must be one of {known}, not {word[:40]!r}") from None


def _milliseconds(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    return parse_span(text, "debounce")
