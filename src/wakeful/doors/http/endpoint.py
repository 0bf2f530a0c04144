"""Endpoints: one row each says path, scope, what goes in, what comes out and who answers."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from wakeful.access.principal import Principal
from wakeful.doors.http.problems import Problem
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean_json

LARGEST_BODY = 1024 * 1024
JSON = "application/json"
FORM = "multipart/form-data"
ANYBODY = "any"  # every valid credential; the answer holds what its owner may see

Query = TypeVar("Query")
Body = TypeVar("Body")

_json = msgspec.json.Encoder()


class Given(Record, forbid_unknown_fields=True):
    """A query or a body; a field that nobody knows is refused, since it would be ignored."""


class Nothing(Given):
    """No query, or no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRule:
    """What may be sent to a path."""

    largest: int = LARGEST_BODY
    streamed: str | None = None  # the media type of what is read as it comes; None: JSON, whole
    form: str | None = None  # the media type of a form that may be sent instead


PLAIN_BODY = BodyRule()


@dataclass(frozen=True, slots=True)
class Call(Generic[Query, Body]):
    """A request that was let through and read."""

    principal: Principal
    path: Mapping[str, str]
    query: Query
    body: Body
    request: Request


Answer = Record | Response | tuple[int, Record]


@dataclass(frozen=True, slots=True)
class Link:
    """A field of the answer that is a parameter of another endpoint."""

    method: str
    path: str
    parameter: str
    pointer: str  # to the field, as JSON Pointer


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One row of the table of routes; what is not in the table does not exist."""

    method: str
    path: str
    scope: str | None  # None: public
    summary: str
    answer: Callable[[Call[Any, Any]], Awaitable[Answer]]
    query: type[Any] = Nothing
    body: type[Any] = Nothing
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # that it reads, and why
    returns: Mapping[int, type[Any] | str] = field(default_factory=dict[int, type[Any] | str])
    links: tuple[Link, ...] = ()  # what a client may do next with the answer
    largest_body: int = LARGEST_BODY
    streams: bool = False  # the answer has no end of its own
    streamed: str | None = None  # the media type of a body that is read as it comes
    # Reads a form that may be sent instead of JSON; None: it may not.
    read_form: Callable[[Request], Awaitable[Any]] | None = None

    @property
    def takes_body(self) -> bool:
        return self.body is not Nothing

    def lets_in(self, principal: Principal) -> bool:
        return self.scope in (None, ANYBODY) or principal.may(self.scope or "")


async def respond(
    endpoint: Endpoint, request: Request, path: Mapping[str, str], principal: Principal
) -> Response:
    """Read a request by its endpoint's types, have it answered, and write the answer."""
    call = Call(
        principal=principal,
        path=path,
        query=_read_query(endpoint, request),
        body=await _read_body(endpoint, request),
        request=request,
    )
    answer = await endpoint.answer(call)
    if isinstance(answer, Response):
        return answer
    status, content = answer if isinstance(answer, tuple) else (200, answer)
    return Response(_json.encode(content), status_code=status, media_type=JSON)


def _read_query(endpoint: Endpoint, request: Request) -> Any:
    given: dict[str, str] = {}
    if request.scope["query_string"]:
        for name, value in request.query_params.multi_items():
            if name in given:
                raise Problem("invalid-input", f"{name}: must be given once", field=name)
            given[name] = value
    try:
        return msgspec.convert(given, endpoint.query, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, "query") from None


async def _read_body(endpoint: Endpoint, request: Request) -> Any:
    if not endpoint.takes_body:
        return Nothing()
    if endpoint.read_form and request.headers.get("content-type", "").lower().startswith(FORM):
        return await endpoint.read_form(request)
    raw = await _whole_body(request)
    try:
        return msgspec.json.decode(raw, type=endpoint.body)
    except msgspec.ValidationError as error:
        raise invalid(error, "body") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _read_mended(raw, endpoint.body)


async def _whole_body(request: Request) -> bytes:
    """Return the body, which nearly always comes in one piece."""
    chunks: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def _read_mended(raw: bytes, kind: type[Any]) -> Any:
    """Read JSON with lone surrogates, which msgspec refuses; they are replaced."""
    try:
        if b"\\u" not in raw:
            raise ValueError("it is cut off, too deep or garbled")
        return msgspec.convert(clean_json(json.loads(raw)), kind)
    except msgspec.ValidationError as error:
        raise invalid(error, "body") from None
    except (ValueError, RecursionError):
        raise Problem("bad-request", "the body is not JSON that can be read") from None


def invalid(error: msgspec.ValidationError, where: str) -> Problem:
    """Return how a value that does not fit its type is told."""
    rule, _, place = str(error).partition(" - at `$")
    name = place.rstrip("`").lstrip(".") or where
    return Problem("invalid-input", f"{name}: {rule}", field=name)
