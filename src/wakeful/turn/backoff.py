"""When to ask a model again that could not answer."""

from wakeful.vocabulary.errors import Garbled, Transient

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
GARBLED_RETRIES = 1


def next_try(error: Transient, retries: int, limit: int, now: int) -> int | None:
    """Return when to try again, or None if it has been tried often enough."""
    if isinstance(error, Garbled):
        return now if retries < GARBLED_RETRIES else None
    if retries >= limit:
        return None
    wait_s = min(FIRST_WAIT_S * 2**retries, LONGEST_WAIT_S)
    if error.retry_after_s is not None:
        wait_s = max(wait_s, error.retry_after_s)
    return now + round(wait_s * 1000)
