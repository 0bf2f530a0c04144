"""Sort what a provider's library raises by who must act: time, a human, or nobody but us."""

from http import HTTPStatus

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
from wakeful.models.statuses import (
    NO_CREDIT,
    NOT_AVAILABLE,
    OWN_FAULT,
    REFUSED,
    REFUSED_KEY,
    SLOW_DOWN,
    TOO_LATE,
    UNKNOWN_MODEL,
    UNREACHABLE,
    quoted,
    said_in,
    shown_text,
)
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent, Transient, WakefulError

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
    (ModelAuthenticationError, REFUSED_KEY),
    (ModelQuotaExceededError, NO_CREDIT),
    (ModelNotFoundError, UNKNOWN_MODEL),
    (ModelRequestRejectedError, REFUSED),
    (ModelRateLimitError, SLOW_DOWN),
    (ModelUnavailableError, NOT_AVAILABLE),
    (ModelServerError, OWN_FAULT),
    (ModelRequestTimeout, TOO_LATE),
    (ModelConnectionError, UNREACHABLE),
)


def sorted_error(error: Exception, name: str, tokens: int = 0) -> WakefulError:
    """Return the error of ours that says the same about the model `name`.

    `tokens` is an estimate of what was sent. An error without a category, or of another library,
    came from an answer that was unreadable.
    """
    if isinstance(error, ModelAPIError) and (refusal := _too_long(error, tokens)) is not None:
        sentence = f"The conversation is too large for {name}.{quoted(said_in(error.body))}"
        return ContextOverflow(sentence, window=refusal.window, is_in_bytes=refusal.is_in_bytes)
    if (status := _redirect(error)) is not None:
        return Permanent(f"{name} is not at this address, which leads elsewhere ({status}).")
    if isinstance(error, ModelAPIError) and type(error) is not ModelAPIError:
        sentence = f"{name} {_why(error)}{_status(error)}.{quoted(said_in(error.body))}"
        if _may_work_later(error):
            is_free = isinstance(error, ModelHTTPError)
            return Transient(sentence, retry_after_s=error.retry_after, is_free=is_free)
        return Permanent(sentence)
    if isinstance(error, UserError | ImportError):
        return unusable(error, name)
    return Garbled(f"{name} answered with something unreadable: {shown_text(_named(error))}")


def unusable(error: Exception, name: str) -> Permanent:
    """Return the error for a model that cannot even be asked."""
    return Permanent(f"{name} cannot be used: {shown_text(str(error))}")


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


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
