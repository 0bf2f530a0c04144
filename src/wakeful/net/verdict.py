"""What a receiver's answer means for the sender: done, later, or never."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from wakeful.net.client import HttpResponse
from wakeful.vocabulary.errors import Permanent, Transient

LONGEST_WAIT_S = 3600.0  # whatever a receiver asks for
TRY_LATER = frozenset({408, 409, 425, 429})
MOVED = frozenset({301, 308})


def refuse_failure(answer: HttpResponse, receiver: str, now: int) -> None:
    """Return if the receiver has it; raise Permanent if it never will, Transient if it may."""
    status = answer.status
    if 200 <= status < 300:
        return
    if status in MOVED:
        raise Permanent(f"{receiver!r} has moved (status {status}): redirects are not followed")
    if 400 <= status < 500 and status not in TRY_LATER:
        raise Permanent(f"{receiver!r} refused it with status {status}")
    wait_s = retry_after_s(answer.headers.get("retry-after"), now)
    raise Transient(f"{receiver!r} answered with status {status}", retry_after_s=wait_s)


def retry_after_s(value: str | None, now: int) -> float | None:
    """Read a Retry-After, seconds or a date, as seconds from now; None if it says nothing."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        wait_s = float(text[:20])
    else:
        try:
            then = parsedate_to_datetime(text)
            if then.tzinfo is None:
                then = then.replace(tzinfo=UTC)
            wait_s = then.timestamp() - now / 1000
        except (ValueError, OverflowError):
            return None
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)
