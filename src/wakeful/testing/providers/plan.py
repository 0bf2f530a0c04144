"""What a stand-in provider answers: one step per question, told by JSON.

A question is known by the newest mark `{name}` in what people said; the plan of that name has a
step for each time it is asked, and the last step is repeated. Without a plan the answer is "ok".
"""

import re
from typing import Any

from wakeful.vocabulary.record import Record

_MARK = re.compile(r"\{(\w+)\}")


class PlannedCall(Record):
    """A tool call of an answer."""

    name: str
    arguments: dict[str, Any] = {}
    id: str | None = None  # None: one that nobody had before
    raw: str | None = None  # instead of the arguments: any text


class Tokens(Record):
    """What the answer says it cost."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


class Step(Record):
    """One answer."""

    text: str = "ok"
    pieces: int = 1  # the text comes in so many deltas
    thinking: str = ""
    # Where thoughts come in Chat Completions: this field, or `reasoning_details` as of a router.
    thinking_in: str = "reasoning_content"
    calls: tuple[PlannedCall, ...] = ()
    tokens: Tokens = Tokens()
    stop: str = ""  # another reason to stop than the usual one
    # Instead of an answer:
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    # What goes wrong on the way:
    # "headers", "first", "middle" or "end": nothing more comes from there on, not even an end.
    silence: str = ""
    pause_ms: int = 0  # between two events
    chunk: int = 0  # bytes of each write; 0: an event at a time
    drop: tuple[str, ...] = ()  # events of these types do not come
    twice: tuple[str, ...] = ()  # events of these types come twice
    is_shuffled: bool = False  # events come in the wrong order
    cut: int = 0  # the connection breaks this many bytes before the end
    garbage: str = ""  # an event of these bytes (Latin-1) comes in the middle


Plans = dict[str, tuple[Step, ...]]


def mark_in(texts: list[str]) -> str:
    """Return the newest mark in what people said, oldest first; empty if there is none."""
    for text in reversed(texts):
        if found := _MARK.findall(text):
            return found[-1]
    return ""


def step_of(plans: Plans, mark: str, time: int) -> Step:
    """Return the step for the `time`-th question (from 0) with a mark."""
    steps = plans.get(mark) or (Step(),)
    return steps[min(time, len(steps) - 1)]


def in_pieces(text: str, count: int) -> list[str]:
    """Cut a text into at most `count` pieces of about the same length."""
    size = -(-len(text) // max(1, count)) or 1
    return [text[start : start + size] for start in range(0, len(text), size)]
