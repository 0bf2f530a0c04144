"""Retrying: what a service does goes on, whatever the store or the machine refuses for a while."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreFailed, Transient

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 5.0  # what passes is soon over
LONGEST_PAUSE_OF_OTHERS_S = 60.0  # what nobody foresaw may stay

T = TypeVar("T")

log = logging.getLogger(__name__)


async def retrying(clock: Clock, what: str, act: Callable[[], Awaitable[T]]) -> T:
    """Do one round of a service, again and again until it succeeds, with pauses that grow.

    Only a store that has failed ends it: `act` must leave nothing behind that a repetition
    would do twice.
    """
    pauses = 0
    while True:
        try:
            return await act()
        except StoreFailed:
            raise
        except Exception as error:
            is_passing = isinstance(error, Transient)
            longest_s = LONGEST_PAUSE_S if is_passing else LONGEST_PAUSE_OF_OTHERS_S
            pause_s = min(FIRST_PAUSE_S * 2 ** min(pauses, 10), longest_s)
            # A traceback for the first failure only: the later ones just say that it goes on.
            log.warning("%s: failed, again in %g s: %s", what, pause_s, error, exc_info=pauses == 0)
            pauses += 1
        await clock.sleep(pause_s)
