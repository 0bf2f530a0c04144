"""When to ask a model again that could not answer."""

from random import Random

from wakeful.vocabulary.errors import Transient

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
LONGEST_RETRY_AFTER_S = 86_400.0  # whoever names a later time is asked after a day
LEAST_PART = 0.5  # of a wait, so that those who failed together do not come back together


def next_try(error: Transient, retries: int, limit: int, now: int, random: Random) -> int | None:
    """Return when to try again, or None if it has been tried often enough."""
    if retries >= limit:
        return None
    wait_s = min(FIRST_WAIT_S * 2**retries, LONGEST_WAIT_S) * random.uniform(LEAST_PART, 1)
    if error.retry_after_s is not None:
        wait_s = max(wait_s, min(error.retry_after_s, LONGEST_RETRY_AFTER_S))
    return now + round(wait_s * 1000)
