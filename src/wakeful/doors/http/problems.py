"""Errors as problem documents (RFC 9457) with codes that do not change."""

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from wakeful.vocabulary.errors import (
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreFailed,
    StoreFull,
    TooOften,
    Transient,
    Underway,
    UnreadableRow,
)
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import error_text

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

TITLES: dict[str, tuple[int, str]] = {
    "bad-request": (400, "The request cannot be read"),
    "token-in-url": (400, "A token must never be part of an address"),
    "unauthorized": (401, "A valid token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "foreign-origin": (403, "The request comes from another site"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "This address does not take that method"),
    "timeout": (408, "The request took too long to arrive"),
    "conflict": (409, "The same key came with another body"),
    "name-taken": (409, "Another one has this name"),
    "ambiguous": (409, "Several have this name"),
    "too-late": (409, "What should be changed has ended already"),
    "busy": (409, "A turn is running there"),
    "too-large": (413, "The request is too large"),
    "unsupported-media-type": (415, "The body must be JSON"),
    "foreign-host": (421, "This host is not served here"),
    "invalid-input": (422, "A value breaks a rule"),
    "upgrade-required": (426, "This address is a WebSocket"),
    "too-many-requests": (429, "Too many requests"),
    "headers-too-large": (431, "The headers are too large"),
    "unreadable": (500, "Another release wrote this"),
    "internal": (500, "Something went wrong inside the runtime"),
    "not-installed": (501, "A part of the runtime is not installed"),
    "unavailable": (503, "The runtime cannot take this now"),
    "full": (507, "The disk is full"),
}

# What time mends has its own code, and a wait where the error names none.
_LATER: dict[type[Exception], tuple[str, float]] = {
    StoreFull: ("full", 30.0),
    TooOften: ("too-many-requests", 60.0),
    Underway: ("busy", 1.0),
}

# Whoever is told this may still be sending; nothing more of it is read.
_LAST_WORDS = frozenset({"too-large", "timeout", "headers-too-large"})


class ProblemDocument(Record, omit_defaults=True):
    """What went wrong, for people and for programs."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    field: str | None = None
    ids: Sequence[str] = ()  # of what stands in the way


class Problem(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        field: str | None = None,
        ids: Sequence[str] = (),
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title = TITLES[code]
        self.detail = detail
        self.field = field
        self.ids = ids
        self.headers: dict[str, str] = {}  # that say it too, in whatever form the body is
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after_s)))
        if self.status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"
        if self.code in _LAST_WORDS:
            self.headers["Connection"] = "close"
        self.headers |= dict(headers or {})

    def response(self) -> Response:
        document = ProblemDocument(
            type="about:blank",
            title=self.title,
            status=self.status,
            code=self.code,
            detail=self.detail,
            field=self.field,
            ids=self.ids,
        )
        return Response(
            msgspec.json.encode(document),
            status_code=self.status,
            headers=self.headers,
            media_type=MEDIA_TYPE,
        )


# How errors are told below a prefix that has a form of its own.
ErrorForm = Callable[[Problem], Response]


def missing(extra: str) -> Problem:
    """Return what is told of a part of the runtime that is installed on wish, and was not."""
    return Problem("not-installed", f"install 'wakeful[{extra}]' and start again")


def problem_of(error: Exception) -> Problem:
    """Return how an error is told to whoever asked."""
    match error:
        case Problem():
            return error
        case ClientDisconnect():
            return Problem("bad-request", "the request was cut off")
        case NotFound():
            return Problem("not-found", str(error), field=error.field)
        case InvalidInput():
            return Problem("invalid-input", str(error), field=error.field)
        case UnreadableRow():
            rest = "run the release that wrote it, or delete it; `wakeful doctor` lists all of them"
            return Problem("unreadable", f"{error_text(error)}; {rest}")
        case StoreBusy():  # its own words may name where the database is
            return Problem(
                "unavailable", str(StoreBusy()), retry_after_s=error.retry_after_s or 1.0
            )
        case Transient():
            code, wait_s = _LATER.get(type(error), ("unavailable", 1.0))
            return Problem(code, str(error), retry_after_s=error.retry_after_s or wait_s)
        case StoreFailed():
            return Problem("unavailable", str(error), retry_after_s=30)
        case MemoryError():
            return Problem("unavailable", "there is no memory left", retry_after_s=5)
        case _:
            note_bug("a request", error)
            return Problem("internal")


def note_bug(what: str, error: Exception) -> None:
    """Log where something broke, without its words: they may quote what somebody sent."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed: %s\n%s", what, type(error).__name__, where)
