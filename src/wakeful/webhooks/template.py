"""Templates: text with places for headers, for values of a payload and for the body.

A place is only ever looked up: there is nothing in a template that could be run.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

LONGEST_TEMPLATE = 4000  # characters
BODY, PAYLOAD = "body", "payload"

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_INDEX = re.compile(r"[0-9]{1,6}")
_BRACES = {"{{": "{", "}}": "}"}


class Delivered(Record):
    """A request whose sender is proved, as templates see it."""

    headers: Mapping[str, str]  # by their names in lower case
    body: str
    payload: Any = None  # of JSON or a form; None: there is none


class Header(Record):
    """A place for a header."""

    name: str


class Value(Record):
    """A place for something of the payload; without steps, for all of it."""

    steps: tuple[str, ...]


class WholeBody(Record):
    """A place for the body."""


class Template(Record):
    """What is written, in the order of the text: words, and places."""

    parts: tuple[str | Header | Value | WholeBody, ...]

    @property
    def has_payload(self) -> bool:
        """Whether it asks for something of the payload."""
        return any(isinstance(part, Value) for part in self.parts)

    @property
    def headers(self) -> frozenset[str]:
        """The headers that it asks for."""
        return frozenset(part.name for part in self.parts if isinstance(part, Header))

    def rendered(self, delivered: Delivered, longest: int) -> str:
        """Return the text, at most so many characters of it; what is not there is empty."""
        text, left = list[str](), longest
        for part in self.parts:
            words = _said(part, delivered)[:left]
            text.append(words)
            left -= len(words)
        return "".join(text)


def parse(text: str, field: str) -> Template:
    """Read a template, or refuse it naming the field."""
    if len(text) > LONGEST_TEMPLATE:
        raise InvalidInput(field, f"must be at most {LONGEST_TEMPLATE} characters")
    found = (_part(one[0], one[1], field) for one in _PART.finditer(text))
    return Template(parts=tuple(found))


def _part(text: str, place: str | None, field: str) -> str | Header | Value | WholeBody:
    if place is None:
        if text in ("{", "}"):
            rule = "has a brace without its partner; {{ and }} stand for one brace"
            raise InvalidInput(field, rule)
        return _BRACES.get(text, text)
    if place == BODY:
        return WholeBody()
    word, *steps = place.split(".")
    if word == PAYLOAD and all(steps):
        return Value(steps=tuple(steps))
    if word == PAYLOAD or not _HEADER.fullmatch(place):
        rule = "must have places such as {Header-Name}, {payload.name.0} or {body}, not"
        raise InvalidInput(field, f"{rule} {{{place[:60]}}}")
    return Header(name=place.lower())


def _said(part: str | Header | Value | WholeBody, delivered: Delivered) -> str:
    match part:
        case str():
            return part
        case WholeBody():
            return delivered.body
        case Header(name=name):
            return delivered.headers.get(name, "")
        case Value(steps=steps):
            return _written(_found(delivered.payload, steps))


def _found(value: Any, steps: tuple[str, ...]) -> Any:
    """Return what lies at the end of a path of names and positions; None: nothing."""
    for step in steps:
        match value:
            case dict():
                value = cast("dict[str, Any]", value).get(step)
            case list() if _INDEX.fullmatch(step):
                items = cast("list[Any]", value)
                value = items[int(step)] if int(step) < len(items) else None
            case _:
                return None
    return value


def _written(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()
