"""The wire: connects to judged addresses only, and gives up by the injected clock.

This is the network that `httpcore2` sees. It hands over the host's name, which it also checks the
certificate against; the address is chosen here.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpcore2

from wakeful.net.addresses import Allowed
from wakeful.net.guard import Resolver, addresses_of
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.record import Record

MOST_ADDRESSES = 4  # of one host that are tried, one after the other


class Connect(Record):
    """A connection that is about to be tried."""

    host: str
    address: str
    port: int


Observer = Callable[[Connect], object]


class Patience(Record):
    """How long each part of an exchange may take, in seconds."""

    connect_s: float = 5.0  # to each address; and the TLS handshake, and the look-up
    read_s: float = 15.0  # without a single byte, either way
    total_s: float = 25.0


class Wire(httpcore2.AsyncNetworkBackend):
    """The network as one request sees it."""

    def __init__(
        self,
        *,
        clock: Clock,
        patience: Patience,
        allowed: Allowed,
        resolver: Resolver,
        dialer: httpcore2.AsyncNetworkBackend,
        observer: Observer | None,
    ) -> None:
        self._clock = clock
        self._patience = patience
        self._allowed = allowed
        self._resolver = resolver
        self._dialer = dialer
        self._observer = observer

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        async with self._within(httpcore2.ConnectTimeout):
            addresses = await addresses_of(host, port, self._resolver, self._allowed)
        failures: list[Exception] = []
        for address in addresses[:MOST_ADDRESSES]:
            if self._observer is not None:
                self._observer(Connect(host=host, address=str(address), port=port))
            try:
                async with self._within(httpcore2.ConnectTimeout):
                    stream = await self._dialer.connect_tcp(str(address), port)
                return _Stream(stream, self._clock, self._patience)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failures.append(error)
        raise failures[-1]

    def _within(self, error: type[Exception]):
        return _within(self._clock, self._patience.connect_s, error)


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection whose every wait has an end."""

    def __init__(
        self, inner: httpcore2.AsyncNetworkStream, clock: Clock, patience: Patience
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._patience = patience

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        async with _within(self._clock, self._patience.read_s, httpcore2.ReadTimeout):
            return await self._inner.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        async with _within(self._clock, self._patience.read_s, httpcore2.WriteTimeout):
            await self._inner.write(buffer)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with _within(self._clock, self._patience.connect_s, httpcore2.ConnectTimeout):
                inner = await self._inner.start_tls(ssl_context, server_hostname)
        except BaseException:
            # Until the handshake is done nobody else knows this connection, to close it.
            await self._inner.aclose()
            raise
        return _Stream(inner, self._clock, self._patience)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@asynccontextmanager
async def _within(
    clock: Clock, seconds: float, error: type[Exception]
) -> AsyncGenerator[None, None]:
    try:
        async with time_limit(clock, seconds):
            yield
    except TimeoutError as late:
        raise error from late
