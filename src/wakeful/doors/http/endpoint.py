"""Rows of the table: path, who may come, what goes in; of an endpoint also what comes out."""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from wakeful.access.principal import Principal
from wakeful.doors.http.headers import NO_STORE
from wakeful.doors.http.problems import Problem
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import with_whole_surrogates

LARGEST_BODY = 1024 * 1024
JSON = "application/json"
FORM = "multipart/form-data"
ANY_TYPE = "*/*"  # of a body: whatever its media type, or none

# Who may come, beside the name of a scope; `a2a:*` is had by each credential with such a scope.
ANYBODY = "any"  # every valid credential; the answer holds what its owner may see
PUBLIC = "public"  # everybody
SIGNED = "signed"  # whoever proves to the row itself, over the raw bytes, who they are

ANY_METHOD = "*"
SOCKET = "WEBSOCKET"  # in the place of a method

_NO_CHOICE = "Invalid enum value "  # as msgspec says it
_OPEN = frozenset({PUBLIC, SIGNED})

# Entered before a byte of a body is read, held until the work is done; it raises the refusal.
Admit = Callable[[Scope, Mapping[str, str]], AbstractContextManager[object]]

Query = TypeVar("Query")
Body = TypeVar("Body")

_json = msgspec.json.Encoder()
_JSON_TYPE = (b"content-type", JSON.encode())


class Given(Record, forbid_unknown_fields=True):
    """A query or a body; a field that nobody knows is refused, since it would be ignored."""

    exact: ClassVar[tuple[str, ...]] = ()  # fields in which no character is ever replaced


class Nothing(Given):
    """No query, or no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRule:
    """What may be sent to a path."""

    largest: int = LARGEST_BODY
    media_types: frozenset[str] = frozenset({JSON})
    is_streamed: bool = False  # read as it comes, so that only each piece must come in time

    def takes(self, media_type: str) -> bool:
        return media_type in self.media_types or ANY_TYPE in self.media_types


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table; what is not in the table does not exist."""

    method: str
    path: str
    scope: str  # the name of one, or a word for who may come
    summary: str
    largest_body: int = LARGEST_BODY
    streams: bool = False  # the answer has no end of its own
    admit: Admit | None = None  # None: whoever the guard let through
    is_hidden: bool = False  # from whoever may not come: as if there were no such path

    @property
    def is_open(self) -> bool:
        """Whether the guard asks for no credential."""
        return self.scope in _OPEN

    @property
    def may_introduce_later(self) -> bool:
        """Whether the guard may leave it to the row to ask for a credential."""
        return False

    def body_rule(self) -> BodyRule:
        return BodyRule(largest=self.largest_body)

    def admitted(self, scope: Scope, path: Mapping[str, str]) -> AbstractContextManager[object]:
        return nullcontext() if self.admit is None else self.admit(scope, path)

    def lets_in(self, principal: Principal | None) -> bool:
        if principal is None:
            return self.is_open
        if self.scope == ANYBODY or principal.may(self.scope) or self.is_open:
            return True
        kind, star, _ = self.scope.partition("*")
        return bool(star) and any(scope.startswith(kind) for scope in principal.scopes)


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
class Endpoint(Row):
    """A row that answers each request with one record, or one response."""

    answer: Callable[[Call[Any, Any]], Awaitable[Answer]]
    query: type[Any] = Nothing
    body: type[Any] = Nothing  # `bytes`: as it came, for whoever must see every byte of it
    media_types: tuple[str, ...] = (JSON,)  # of a body of bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # that it reads, and why
    returns: Mapping[int, type[Any] | str] = field(default_factory=dict[int, type[Any] | str])
    links: tuple[Link, ...] = ()  # what a client may do next with the answer
    streamed: str | None = None  # the media type of a body that is read as it comes
    # Reads a form that may be sent instead of JSON; None: it may not.
    read_form: Callable[[Request], Awaitable[Any]] | None = None

    def __post_init__(self) -> None:
        if self.scope == SIGNED and (self.body is not bytes or self.admit is None):
            raise ValueError(f"{self.path} is signed: it needs raw bytes, and a limit before them")

    @property
    def takes_body(self) -> bool:
        return self.body is not Nothing

    def body_rule(self) -> BodyRule:
        others = [self.streamed or JSON, FORM if self.read_form else JSON]
        return BodyRule(
            largest=self.largest_body,
            media_types=frozenset(self.media_types if self.body is bytes else [JSON, *others]),
            is_streamed=self.streamed is not None,
        )


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
    return _JsonResponse(_json.encode(content), status)


class _JsonResponse(Response):
    """What most answers are, without looking for headers that are known: 2 of 20 microseconds."""

    def __init__(self, content: bytes, status: int) -> None:
        self.status_code = status
        self.body = content
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(content)), _JSON_TYPE, NO_STORE]


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
        raise invalid(error, "query", endpoint.query) from None


async def _read_body(endpoint: Endpoint, request: Request) -> Any:
    if not endpoint.takes_body:
        return Nothing()
    if endpoint.read_form and request.headers.get("content-type", "").lower().startswith(FORM):
        return await endpoint.read_form(request)
    raw = await _whole_body(request)
    if endpoint.body is bytes:
        return raw
    try:
        return msgspec.json.decode(raw, type=endpoint.body)
    except msgspec.ValidationError as error:
        raise invalid(error, "body", endpoint.body) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return await asyncio.to_thread(_read_mended, raw, endpoint.body)


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
    """Read JSON with lone surrogates, which msgspec refuses; they are replaced.

    In the bytes, so that what is read still has its type: of what nobody asked for, nothing is
    made.
    """
    try:
        body = msgspec.json.decode(with_whole_surrogates(raw), type=kind)
    except msgspec.ValidationError as error:
        raise invalid(error, "body", kind) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Problem("bad-request", "the body is not JSON that can be read") from None
    for name in getattr(kind, "exact", ()):
        if "\ufffd" in (getattr(body, name) or ""):
            raise Problem("invalid-input", f"{name}: must have no lone surrogates", field=name)
    return body


def invalid(error: msgspec.ValidationError, where: str, kind: Any = None) -> Problem:
    """Return how a value that does not fit its type is told."""
    rule, _, place = str(error).partition(" - at `$")
    name = place.rstrip("`").lstrip(".") or where
    if "datetime" in rule:
        rule = "must be an instant with its zone, such as 2026-01-01T07:00:00Z"
    elif rule.startswith(_NO_CHOICE) and (choices := _choices_of(kind, name)):
        rule = f"must be one of {', '.join(choices)}, not {rule.removeprefix(_NO_CHOICE)}"
    return Problem("invalid-input", f"{name}: {rule}", field=name)


def _choices_of(kind: Any, name: str) -> list[str]:
    return _choices(get_type_hints(kind).get(name)) if isinstance(kind, type) else []


def _choices(hint: Any) -> list[str]:
    """Return the words that a value may be, where only some may."""
    if get_origin(hint) is Literal:
        return [str(one) for one in get_args(hint)]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [str(one.value) for one in hint]
    return [word for part in get_args(hint) for word in _choices(part)]
