"""Bodies that arrive: whole, in time, within their size, and not too much of them at once."""

from collections.abc import Generator
from contextlib import contextmanager

from starlette.types import Message, Receive, Send

from wakeful.access.principal import Principal
from wakeful.doors.http.endpoint import BodyRule
from wakeful.doors.http.problems import Problem
from wakeful.vocabulary.clock import Clock, time_limit

BODY_SECONDS = 10.0
MOST_ARRIVING = 128 * 1024 * 1024  # bytes of bodies of one credential that wait for their answer


class Arriving:
    """Knows how much of each credential's bodies is held in memory."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._each: dict[str, int] = {}

    @contextmanager
    def body(
        self, receive: Receive, send: Send, rule: BodyRule, principal: Principal | None
    ) -> Generator["Body", None, None]:
        """Measure a body until its answer begins: by then, whoever reads it has let go of it."""
        # What strangers may send is small, or has a limit of its row.
        token_id = None if principal is None or rule.is_streamed else principal.token_id
        body = Body(receive, send, rule, self, token_id)
        try:
            yield body
        finally:
            body.let_go()

    def add(self, token_id: str, size: int) -> None:
        held = self._each.get(token_id, 0) + size
        if held > MOST_ARRIVING:
            raise Problem("too-many-requests", "too much at once with this token", retry_after_s=1)
        self._each[token_id] = held

    def remove(self, token_id: str, size: int) -> None:
        self._each[token_id] -= size
        if not self._each[token_id]:
            del self._each[token_id]


class Body:
    """A body that must arrive whole, in time and within its size; of a stream each piece."""

    def __init__(
        self, receive: Receive, send: Send, rule: BodyRule, arriving: Arriving, token_id: str | None
    ) -> None:
        self._receive = receive
        self._send = send
        self._rule = rule
        self._arriving = arriving
        self._token_id = token_id  # None: it is not held in memory, or nobody's
        self._size = 0
        self._held = 0
        self._is_whole = False
        self._until_s: float | None = None

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        message = await self._receive_in_time()
        if message["type"] == "http.request":
            self._count(len(message.get("body", b"")))
            self._is_whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        self.let_go()
        await self._send(message)

    def let_go(self) -> None:
        """Count no longer what was held."""
        if self._held and self._token_id is not None:
            self._arriving.remove(self._token_id, self._held)
        self._held = 0

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._rule.largest:
            raise Problem("too-large")
        if size and self._token_id is not None:
            self._arriving.add(self._token_id, size)
            self._held += size

    async def _receive_in_time(self) -> Message:
        clock = self._arriving.clock
        now_s = clock.monotonic()
        if self._until_s is None or self._rule.is_streamed:
            self._until_s = now_s + BODY_SECONDS
        try:
            async with time_limit(clock, max(0.0, self._until_s - now_s)):
                return await self._receive()
        except TimeoutError:
            raise Problem("timeout") from None
