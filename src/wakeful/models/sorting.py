"""Sort what a provider's library raises by who must act: time, a human, or nobody but us."""

import os
from http import HTTPStatus
from typing import Any

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UserError,
)

from wakeful.models.refusals import TooLong, too_long
from wakeful.telemetry.redaction import Redaction, secrets_in
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent, Transient, WakefulError
from wakeful.vocabulary.text import one_line

LONGEST_QUOTE = 300  # characters of what a provider said

_LATER = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
    ModelRequestTimeout,
)
_LATER_STATUSES = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
_WHY: tuple[tuple[type[ModelAPIError], str], ...] = (
    (ModelAuthenticationError, "refused our key; check it, and what it may use"),
    (ModelQuotaExceededError, "says that the account has no quota or credit left"),
    (ModelNotFoundError, "does not know the model, or the address is wrong"),
    (ModelRequestRejectedError, "refused the request"),
    (ModelRateLimitError, "asks us to slow down"),
    (ModelUnavailableError, "is overloaded or not available"),
    (ModelServerError, "has a fault of its own"),
    (ModelRequestTimeout, "did not answer in time"),
    (ModelConnectionError, "cannot be reached, or broke off"),
)


def sorted_error(error: Exception, name: str, tokens: int = 0) -> WakefulError:
    """Return the error of ours that says the same about the model `name`.

    `tokens` is an estimate of what was sent. An error without a category, or of another library,
    came from an answer that was unreadable.
    """
    if isinstance(error, ModelAPIError) and (refusal := _too_long(error, tokens)) is not None:
        sentence = f"The conversation is too large for {name}.{_quote(error)}"
        return ContextOverflow(sentence, window=refusal.window)
    if (status := _redirect(error)) is not None:
        return Permanent(f"{name} is not at this address, which leads elsewhere ({status}).")
    if isinstance(error, ModelAPIError) and type(error) is not ModelAPIError:
        sentence = f"{name} {_why(error)}{_status(error)}.{_quote(error)}"
        if _may_work_later(error):
            return Transient(sentence, retry_after_s=error.retry_after)
        return Permanent(sentence)
    if isinstance(error, UserError | ImportError):
        return unusable(error, name)
    return Garbled(f"{name} answered with something unreadable: {_line(_named(error))}")


def unusable(error: Exception, name: str) -> Permanent:
    """Return the error for a model that cannot even be asked."""
    return Permanent(f"{name} cannot be used: {_line(str(error))}")


def _too_long(error: ModelAPIError, tokens: int) -> TooLong | None:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    refusal = too_long(status, _body(error), tokens)
    if refusal is None and isinstance(error, ModelContextWindowExceededError):
        return TooLong()
    return refusal


def _body(error: ModelAPIError) -> str:
    """Return all that a provider answered, as text."""
    body: object = error.body
    if body is None:
        return "" if isinstance(error, ModelHTTPError) else str(error)
    return body if isinstance(body, str) else str(body)


def _redirect(error: Exception) -> int | None:
    """Return the status of an answer that leads elsewhere; only the vendor's own error has it."""
    status: object = getattr(error.__cause__, "status_code", None)
    leads = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)
    return status if isinstance(status, int) and status in leads else None


def _may_work_later(error: ModelAPIError) -> bool:
    if isinstance(error, _LATER):
        return True
    if isinstance(error, ModelRequestRejectedError | ModelQuotaExceededError):
        return False
    status = error.status_code if isinstance(error, ModelHTTPError) else 0
    return status in _LATER_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _why(error: ModelAPIError) -> str:
    return next((why for kind, why in _WHY if isinstance(error, kind)), "failed")


def _status(error: ModelAPIError) -> str:
    return f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _quote(error: ModelAPIError) -> str:
    """Return what the provider said, if it is more than a page for a browser."""
    said = _said(error.body)
    if not said or said.lstrip().startswith("<"):
        return ""
    return f" It said: {_line(said)}"


def _said(body: Any) -> str:
    """Find the sentence in an error's body, however the provider wraps it."""
    match body:
        case {"message": str(message)} | {"error": {"message": str(message)} | str(message)}:
            return message
        case str():
            return body
        case _:
            return ""


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _line(text: str) -> str:
    """Return one line of what somebody said; some quote the very key that they refuse."""
    return one_line(Redaction(secrets_in(os.environ)).hide(text), LONGEST_QUOTE)
