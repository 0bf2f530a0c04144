"""Answers that are read as they come, at little cost: many pieces, each of a few bytes.

The guarded client of others spends most of a long answer in its parser, which is written in
Python; this one has the parser of the server, which is not. Addresses are judged by the same guard.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from wakeful.net.addresses import Allowed
from wakeful.net.dialing import Dialer, system_authorities
from wakeful.net.exchange import Connection, OutOfReach, StreamedAnswer
from wakeful.net.guard import Resolver, system_resolver
from wakeful.net.proxies import Proxy
from wakeful.net.target import USER_AGENT, Target
from wakeful.vocabulary.clock import Clock

IDLE_S = 15.0  # after which a connection that nobody uses is closed


class StreamingClient:
    """The connections to one place; each serves one request at a time and is then kept a while."""

    def __init__(
        self,
        target: Target,
        clock: Clock,
        *,
        allowed: Allowed,
        resolver: Resolver = system_resolver,
        proxy: Proxy | None = None,
        authorities: Callable[[], ssl.SSLContext] = system_authorities,
    ) -> None:
        self._target = target
        self._clock = clock
        # A place that TLS is spoken with sees no trace of the proxy; another is asked through it.
        self._relay = proxy if target.scheme == "http" else None
        self._dialer = Dialer(
            target,
            clock,
            allowed=allowed,
            resolver=resolver,
            proxy=proxy,
            authorities=authorities,
        )
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def post(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[StreamedAnswer, None]:
        """Send a body and give the answer as soon as its headers are there.

        Leaving the block before the end of the answer closes the connection. Raises OutOfReach if
        the place cannot be reached or breaks off, AddressRefused if it may not be reached.
        """
        request = _head(self._target, path, headers, len(body), self._relay) + body
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

    async def _asked(self, request: bytes) -> Connection:
        """Return a connection over which an answer has begun."""
        kept = self._kept()
        if kept is not None:
            try:
                return await _begun(kept, request)
            except OutOfReach:
                if kept.has_heard:
                    raise
                # It was closed while we wrote: nobody has read the request.
        return await _begun(await self._dialer.connect(), request)

    def _kept(self) -> Connection | None:
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.awake(loop):
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle = [one for one in self._idle if not one.is_lost]
        self._idle.append(connection)
        connection.rest(self._clock, IDLE_S)


async def _begun(connection: Connection, request: bytes) -> Connection:
    try:
        connection.send(request)
        await connection.begun()
    except BaseException:
        connection.abort()
        raise
    return connection


def _head(
    target: Target, path: str, headers: Mapping[str, str], length: int, relay: Proxy | None
) -> bytes:
    """Return the first lines of a request; the values of headers must be known to be sendable."""
    own = {
        "Host": target.place,
        "User-Agent": USER_AGENT,  # many a gateway lets nobody pass who has no name
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",  # pieces would wait for one another
        "Content-Type": "application/json",
        "Content-Length": str(length),
    }
    if relay is not None:
        path = f"http://{target.place}{path}"
        if relay.authorization:
            own["Proxy-Authorization"] = relay.authorization
    given = {name.lower() for name in headers}
    said = [*((name, one) for name, one in own.items() if name.lower() not in given)]
    lines = "".join(f"{name}: {value}\r\n" for name, value in (*said, *headers.items()))
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
