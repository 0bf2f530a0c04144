"""Sort what a provider says instead of an answer: by who must act, with a sentence for people."""

import math
import os
import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from wakeful.models.refusals import TooLong, too_long
from wakeful.telemetry.redaction import Redaction, secrets_in
from wakeful.vocabulary.errors import ContextOverflow, Permanent, Transient, WakefulError
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import one_line

LONGEST_SAID = 64 * 1024  # characters of an error that are looked at
LONGEST_QUOTE = 300  # characters of what a provider said
OVERLOADED = 529  # a status that only providers of models have

REFUSED_KEY = "refused our key; check it, and what it may use"
NO_CREDIT = "says that the account has no quota or credit left"
UNKNOWN_MODEL = "does not know the model, or the address is wrong"
REFUSED = "refused the request"
SLOW_DOWN = "asks us to slow down"
NOT_AVAILABLE = "is overloaded or not available"
OWN_FAULT = "has a fault of its own"
TOO_LATE = "did not answer in time"
UNREACHABLE = "cannot be reached, or broke off"

_WHY: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: REFUSED_KEY,
    HTTPStatus.PAYMENT_REQUIRED: NO_CREDIT,
    HTTPStatus.FORBIDDEN: REFUSED_KEY,
    HTTPStatus.NOT_FOUND: UNKNOWN_MODEL,
    HTTPStatus.REQUEST_TIMEOUT: TOO_LATE,
    HTTPStatus.TOO_MANY_REQUESTS: SLOW_DOWN,
    HTTPStatus.SERVICE_UNAVAILABLE: NOT_AVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: TOO_LATE,
    OVERLOADED: NOT_AVAILABLE,
}
_LATER = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
# What an error is called that comes in the middle of an answer, and the status it would have had.
_STATUS_OF = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": OVERLOADED,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "timeout_error": 504,
}
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_STATUS = re.compile("[45][0-9][0-9]")
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded"})


class Refusal(Record):
    """What a provider said instead of an answer."""

    status: int  # 0: it said so in the middle of an answer, and nobody knows how it is meant
    said: str = ""
    body: str = ""  # all of it, as text
    codes: tuple[str, ...] = ()  # names of the error that programs understand
    retry_after_s: float | None = None
    is_by_http: bool = True  # by a status of HTTP
    error: Any = None  # as it was given, where the body holds one


def read_refusal(status: int, body: bytes, retry_after: str | None, now: int) -> Refusal:
    """Return what an answer with a status that is no success says."""
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = body.decode("utf-8", "replace")
    return Refusal(
        status=status,
        said=said_in(decoded),
        body=body.decode("utf-8", "replace"),
        codes=_codes(decoded),
        retry_after_s=retry_after_s(retry_after, now),
        error=_error_in(decoded),
    )


def refusal_within(error: Any) -> Refusal:
    """Return what an error says that came in the middle of an answer."""
    codes = _codes({"error": error})
    numbers = (int(code) for code in codes if _STATUS.fullmatch(code))
    known = (_STATUS_OF[code] for code in codes if code in _STATUS_OF)
    status = next(numbers, None) or next(known, 0)
    said = said_in({"error": error})[:LONGEST_SAID]
    return Refusal(status=status, said=said, body=said, codes=codes, is_by_http=False)


def sorted_refusal(
    refusal: Refusal, name: str, tokens: int = 0, secrets: Iterable[str] = ()
) -> WakefulError:
    """Return the error of ours that says what a refusal means for the model `name`.

    `tokens` is an estimate of what was sent.
    """
    quote, status = quoted(refusal.said, secrets), refusal.status
    if (long := _too_long(refusal, tokens)) is not None:
        sentence = f"The conversation is too large for {name}.{quote}"
        return ContextOverflow(sentence, window=long.window, is_in_bytes=long.is_in_bytes)
    if 300 <= status < 400:
        return Permanent(f"{name} is not at this address, which leads elsewhere ({status}).")
    number = f" ({status})" if refusal.is_by_http else ""
    sentence = f"{name} {_why(refusal)}{number}.{quote}"
    if _NO_QUOTA.intersection(refusal.codes):
        return Permanent(sentence)
    if status == 0 or status >= 500 or status in _LATER:
        is_refusal = refusal.is_by_http
        return Transient(sentence, retry_after_s=refusal.retry_after_s, is_free=is_refusal)
    return Permanent(sentence)


def retry_after_s(value: str | None, now: int) -> float | None:
    """Read a Retry-After, seconds or a date, as seconds from now; None if it makes no sense."""
    if value is None:
        return None
    try:
        wait_s = float(value)
    except ValueError:
        try:
            then = parsedate_to_datetime(value)
            then = then.replace(tzinfo=UTC) if then.tzinfo is None else then
            wait_s = then.timestamp() - now / 1000
        except (ValueError, OverflowError):
            return None
    return wait_s if math.isfinite(wait_s) and wait_s >= 0 else None


def said_in(body: Any) -> str:
    """Find the sentence in an error's body, however the provider wraps it."""
    match body:
        case {"message": str(message)} | {"error": {"message": str(message)} | str(message)}:
            return message
        case {"detail": str(message)}:
            return message
        case [dict(), *_]:
            return said_in(body[0])
        case str():
            return body
        case _:
            return ""


def quoted(said: str, secrets: Iterable[str] = ()) -> str:
    """Return what a provider said, if it is more than a page for a browser."""
    if not said or said.lstrip().startswith("<"):
        return ""
    return f" It said: {shown_text(said, secrets)}"


def shown_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return one line of what somebody said; some quote the very key that they refuse."""
    hidden = Redaction((*secrets_in(os.environ), *secrets)).hide(text)
    return one_line(hidden, LONGEST_QUOTE)


def _error_in(body: Any) -> Any:
    match body:
        case {"error": error}:
            return error
        case _:
            return None


def _codes(body: Any) -> tuple[str, ...]:
    match body:
        case {"error": dict()}:
            error: dict[str, Any] = body["error"]
            found = [error.get("code"), error.get("type"), error.get("status")]
            return tuple(str(code) for code in found if isinstance(code, str | int))
        case [dict(), *_]:
            return _codes(body[0])
        case _:
            return ()


def _too_long(refusal: Refusal, tokens: int) -> TooLong | None:
    found = too_long(refusal.status or None, refusal.body, tokens)
    if found is None and _TOO_LONG_CODES.intersection(refusal.codes):
        return TooLong()
    return found


def _why(refusal: Refusal) -> str:
    if _NO_QUOTA.intersection(refusal.codes):
        return NO_CREDIT
    if refusal.status in _WHY:
        return _WHY[refusal.status]
    if refusal.status >= 500:
        return OWN_FAULT
    return REFUSED if 400 <= refusal.status < 500 else UNREACHABLE
