"""Waiting for what no event tells of: another process, a socket, a file, a gauge."""

import asyncio
import time
from collections.abc import Callable

from tests.patience import patience

LIMIT_S = patience(30)
LOOK_EVERY_S = 0.005


async def eventually(look: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Return once something holds."""
    async with asyncio.timeout(limit_s):
        while not look():  # noqa: ASYNC110 (see above)
            await asyncio.sleep(LOOK_EVERY_S)


def eventually_holds(look: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Return once something holds, outside an event loop."""
    until = time.monotonic() + limit_s
    while not look():
        assert time.monotonic() < until
        time.sleep(LOOK_EVERY_S)
