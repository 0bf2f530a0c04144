"""OpenStreams answers: streams and waits, bounded per credential, each of which we can end."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from prometheus_client import CollectorRegistry, Gauge

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.doors.http.problems import Problem

LASTING_EACH = 256  # per credential


class OpenStreams:
    """What is open: ended when its token goes, or all at once when the server stops."""

    def __init__(self, gatekeeper: Gatekeeper, registry: CollectorRegistry) -> None:
        self._gatekeeper = gatekeeper
        self._open: set[Callable[[], object]] = set()
        self._each: dict[str, int] = {}
        self._is_closed = False
        self._gauge = Gauge(
            "wakeful_http_lasting", "Streams and waits that are open.", registry=registry
        )

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """End everything that is open, and whatever comes from now on."""
        self._is_closed = True
        for end in tuple(self._open):
            end()

    def check_room(self, principal: Principal) -> None:
        """Refuse what could not be held; asked before anything is done that lasts."""
        if self._is_closed:
            raise Problem("unavailable", "the server is stopping", retry_after_s=5)
        if self._each.get(principal.token_id, 0) >= LASTING_EACH:
            raise Problem("too-many-requests", "too many open streams", retry_after_s=5)

    @contextmanager
    def hold(self, principal: Principal, end: Callable[[], object]) -> Generator[None, None, None]:
        """Have `end` called when the answer must stop; must be entered before it begins."""
        self.check_room(principal)
        self._each[principal.token_id] = self._each.get(principal.token_id, 0) + 1
        self._open.add(end)
        self._gauge.inc()
        undo = self._gatekeeper.while_valid(principal, end)
        try:
            yield
        finally:
            undo()
            self._gauge.dec()
            self._open.discard(end)
            self._each[principal.token_id] -= 1
            if not self._each[principal.token_id]:
                del self._each[principal.token_id]

    @asynccontextmanager
    async def wait(self, principal: Principal) -> AsyncGenerator[None, None]:
        """Cut the body short, with a TimeoutError, when the answer must stop."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as scope:
            with self.hold(principal, lambda: scope.reschedule(loop.time())):
                await self.check(principal)
                yield

    async def check(self, principal: Principal) -> None:
        """Refuse a principal whose token went before its answer was held."""
        if not await self._gatekeeper.is_valid(principal.token_id):
            raise Problem("unauthorized")
