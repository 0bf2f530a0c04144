"""Answers that are read as they come, at little cost: many pieces, each of a few bytes.

The guarded client of others spends most of a long answer in its parser, which is written in
Python; this one has the parser of the server, which is not. Addresses are judged by the same guard.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Protocol, cast

import httptools

from wakeful.net.addresses import Allowed
from wakeful.net.guard import Resolver, addresses_of, system_resolver
from wakeful.net.target import Target
from wakeful.vocabulary.clock import Alarm, Clock, time_limit
from wakeful.vocabulary.errors import Permanent, Transient

CONNECT_S = 5.0  # to each address; and the look-up
IDLE_S = 15.0  # after which a connection that nobody uses is closed
MOST_ADDRESSES = 4  # of one host that are tried, one after the other
MOST_WAITING = 1024 * 1024  # bytes that came and were not read yet
LARGEST_HEAD = 64 * 1024


class OutOfReach(Transient):
    """The place cannot be reached, or broke off."""

    def __init__(self, message: str, *, is_early: bool = False) -> None:
        super().__init__(message)
        self.is_early = is_early  # before anything was sent


class AddressRefused(Permanent):
    """The place has an address that may not be connected to."""


class StreamingClient:
    """The connections to one place; each serves one request at a time and is then kept a while."""

    def __init__(
        self,
        target: Target,
        clock: Clock,
        *,
        allowed: Allowed,
        resolver: Resolver = system_resolver,
    ) -> None:
        self._target = target
        self._clock = clock
        self._allowed = allowed
        self._resolver = resolver
        self._idle: list[_Connection] = []

    @asynccontextmanager
    async def post(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator["StreamedAnswer", None]:
        """Send a body and give the answer as soon as its headers are there.

        Leaving the block before the end of the answer closes the connection. Raises OutOfReach if
        the place cannot be reached or breaks off, AddressRefused if it may not be reached.
        """
        request = _head(self._target, path, headers, len(body)) + body
        connection = await self._asked(request)
        try:
            yield connection
        finally:
            if connection.is_reusable:
                self._keep(connection)
            else:
                connection.abort()

    async def aclose(self) -> None:
        """Close what nobody uses."""
        while self._idle:
            self._idle.pop().abort()

    async def _asked(self, request: bytes) -> "_Connection":
        """Return a connection over which an answer has begun."""
        kept = self._kept()
        if kept is not None:
            try:
                return await _begun(kept, request)
            except OutOfReach:
                if kept.has_heard:
                    raise
                # It was closed in the moment in which we used it: nobody has read the request.
        return await _begun(await self._connect(), request)

    def _kept(self) -> "_Connection | None":
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.awake(loop):
                return connection
        return None

    def _keep(self, connection: "_Connection") -> None:
        self._idle = [one for one in self._idle if not one.is_lost]
        self._idle.append(connection)
        connection.rest(self._clock, IDLE_S)

    async def _connect(self) -> "_Connection":
        target, loop = self._target, asyncio.get_running_loop()
        tls = await asyncio.to_thread(_authorities) if target.scheme == "https" else None
        failure = f"{target.host!r} cannot be connected to"
        for address in await self._addresses():
            try:
                async with time_limit(self._clock, CONNECT_S):
                    _, connection = await loop.create_connection(
                        lambda: _Connection(repr(target.host), loop),
                        address,
                        target.port,
                        ssl=tls,
                        server_hostname=None if tls is None else target.host,
                    )
                return connection
            except TimeoutError:
                failure = f"{target.host!r} took too long to connect"
            except ssl.SSLCertVerificationError:
                failure = f"{target.host!r} has a certificate that cannot be trusted"
            except OSError:
                continue
        raise OutOfReach(failure, is_early=True)

    async def _addresses(self) -> list[str]:
        host, port = self._target.host, self._target.port
        try:
            async with time_limit(self._clock, CONNECT_S):
                found = await addresses_of(host, port, self._resolver, self._allowed)
        except TimeoutError:
            raise OutOfReach(f"{host!r} cannot be resolved in time", is_early=True) from None
        except Transient as error:
            raise OutOfReach(str(error), is_early=True) from error
        except Permanent as error:
            raise AddressRefused(str(error)) from error
        return [str(address) for address in found[:MOST_ADDRESSES]]


async def _begun(connection: "_Connection", request: bytes) -> "_Connection":
    try:
        connection.send(request)
        await connection.begun()
    except BaseException:
        connection.abort()
        raise
    return connection


class StreamedAnswer(Protocol):
    """What came back so far: any status, redirects included."""

    status: int
    headers: dict[str, str]  # names in small letters; of one that comes twice the first

    async def read(self) -> bytes:
        """Return what has come since the last time, waiting for some; nothing at the end."""
        ...


class _Connection(StreamedAnswer, asyncio.Protocol):
    """One connection, and the answer that is coming over it."""

    def __init__(self, host: str, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._expiry: Alarm | None = None
        self.is_lost = False
        self._forget()

    def _forget(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._size = 0
        self._head_size = 0
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

    def send(self, request: bytes) -> None:
        self._forget()
        self._transport.write(request)

    async def begun(self) -> None:
        """Return when the headers are there."""
        while not self._has_head:
            await self._something()
        packing = self.headers.get("content-encoding", "identity").lower()
        if packing != "identity":
            # Unpacked, a few bytes may be gigabytes.
            raise OutOfReach(f"the answer is packed ({packing[:40]!r}), which nobody asked for")

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
        self._expiry = clock.call_later(seconds, self._transport.close)

    def awake(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Tell whether it can be used once more."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._loop is loop and not self.is_lost and not self._transport.is_closing():
            return True
        self.abort()
        return False

    def abort(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        if not self._loop.is_closed():
            self._transport.abort()

    async def _something(self) -> None:
        """Wait until more has come; raise if nothing more will."""
        if self._problem is not None or (self.is_lost and not self._has_ended):
            raise OutOfReach(self._problem or f"{self._host} broke the connection")
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
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.has_heard = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._problem = self._problem or f"{self._host} does not speak HTTP/1.1"
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
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._has_ended = True
            self._stays_open = self._parser.should_keep_alive()
        else:  # only a hint of what will come
            self.headers = {}


def _head(target: Target, path: str, headers: Mapping[str, str], length: int) -> bytes:
    """Return the first lines of a request; the values of headers must be known to be sendable."""
    own = {
        "Host": target.place,
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",  # pieces would wait for one another
        "Content-Type": "application/json",
        "Content-Length": str(length),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in (*own.items(), *headers.items()))
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


@cache
def _authorities() -> ssl.SSLContext:
    """Return whom this machine trusts; reading that takes longer than the loop may stand still."""
    return ssl.create_default_context()
