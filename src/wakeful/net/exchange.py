"""One connection over which requests go out and answers come in, at little cost for each piece."""

import asyncio
from typing import Protocol, cast

import httptools

from wakeful.vocabulary.clock import Alarm, Clock
from wakeful.vocabulary.errors import Permanent, Transient

BROKE_OFF = "broke the connection"
MOST_WAITING = 1024 * 1024  # bytes that came and were not read yet
LARGEST_HEAD = 64 * 1024  # also of what else is no body: hints, trailers, marks of chunks


class OutOfReach(Transient):
    """The place cannot be reached, or broke off."""

    def __init__(self, message: str, *, is_early: bool = False) -> None:
        super().__init__(message)
        self.is_early = is_early  # before anything was sent


class AddressRefused(Permanent):
    """The place has an address that may not be connected to."""


class StreamedAnswer(Protocol):
    """What came back so far: any status, redirects included."""

    status: int
    headers: dict[str, str]  # names in small letters; of one that comes twice the first

    @property
    def is_packed(self) -> bool:
        """Whether what is read means something only when it is unpacked."""
        ...

    async def read(self) -> bytes:
        """Return what has come since the last time, waiting for some; nothing at the end."""
        ...

    def end_within(self, clock: Clock, seconds: float) -> None:
        """Break the connection if the answer has not ended by then; the first word counts."""
        ...


class Connection(StreamedAnswer, asyncio.Protocol):
    """One connection, and the answer that is coming over it."""

    def __init__(self, host: str, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._expiry: Alarm | None = None
        self._is_resting = False
        self.is_lost = False
        self._forget()

    def _forget(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._saying_nothing = 0  # bytes since the last one of a body
        self._is_paused = False
        self.has_heard = False  # a single byte of an answer
        self._has_head = False
        self._has_ended = False
        self._stays_open = False
        self._problem: str | None = None
        self.status = 0
        self.headers = {}

    # For whoever asks:

    @property
    def is_reusable(self) -> bool:
        return self._has_ended and self._stays_open and not self.is_lost

    @property
    def is_packed(self) -> bool:
        return self.headers.get("content-encoding", "identity").lower() != "identity"

    def send(self, request: bytes) -> None:
        self._forget()
        self._transport.write(request)

    async def begun(self) -> None:
        """Return when the headers are there."""
        while not self._has_head:
            await self._something()
        if self.is_packed and self.status < 300:
            # Unpacked, a few bytes may be gigabytes.
            packing = self.headers["content-encoding"][:40]
            raise OutOfReach(f"{self._host} packed its answer ({packing!r}), unasked")

    def lead_on(self, transport: asyncio.BaseTransport) -> None:
        """Go on over another transport, which leads through the one so far."""
        self._transport = cast("asyncio.Transport", transport)

    @property
    def transport(self) -> asyncio.Transport:
        return self._transport

    async def read(self) -> bytes:
        while not self._pieces:
            if self._has_ended:
                return b""
            await self._something()
        pieces, self._pieces, self._size = self._pieces, [], 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def rest(self, clock: Clock, seconds: float) -> None:
        """Be closed after a while, unless somebody has use for it before."""
        self._cancel_expiry()
        self._is_resting = True
        self._expiry = clock.call_later(seconds, self._transport.close)

    def awake(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Tell whether it can be used once more."""
        self._is_resting = False
        self._cancel_expiry()
        if self._loop is loop and not self.is_lost and not self._transport.is_closing():
            return True
        self.abort()
        return False

    def end_within(self, clock: Clock, seconds: float) -> None:
        if self._expiry is None and not self._has_ended:
            self._expiry = clock.call_later(seconds, self._transport.abort)

    def abort(self) -> None:
        self._cancel_expiry()
        if not self._loop.is_closed():
            self._transport.abort()

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    async def _something(self) -> None:
        """Wait until more has come; raise if nothing more will."""
        if self._problem is not None or (self.is_lost and not self._has_ended):
            raise OutOfReach(self._problem or f"{self._host} {BROKE_OFF}")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # For the loop:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.lead_on(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_resting:  # nobody asked: it would be taken for the next answer
            self._transport.abort()
            return
        self.has_heard = True
        self._saying_nothing += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._problem = self._problem or f"{self._host} does not speak HTTP/1.1"
            self._transport.abort()
        if self._saying_nothing > LARGEST_HEAD + len(data):
            self._problem = self._problem or f"{self._host} sends what is no answer, without end"
            self._transport.abort()
        if self._size > MOST_WAITING and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        is_framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        if exc is None and self._has_head and not is_framed:
            self._has_ended = True  # an answer of the old kind, which ends with its connection
        self._wake()

    # For the parser:

    def on_message_begin(self) -> None:
        if self._has_ended:  # nobody asked for a second one
            self._problem = f"{self._host} answered twice"
            raise ValueError

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > LARGEST_HEAD:
            self._problem = f"{self._host} answered with too many headers"
            raise ValueError
        self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200

    def on_body(self, body: bytes) -> None:
        self._saying_nothing = 0
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._has_ended = True
            self._stays_open = self._parser.should_keep_alive()
        else:  # only a hint of what will come
            self.headers = {}
