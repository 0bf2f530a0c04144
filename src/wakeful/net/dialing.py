"""Connecting to one place: to judged addresses only, and through a proxy where one is named."""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from http import HTTPStatus

from wakeful.net.addresses import Allowed, allow
from wakeful.net.exchange import AddressRefused, Connection, OutOfReach
from wakeful.net.guard import Resolver, addresses_of
from wakeful.net.proxies import Proxy
from wakeful.net.target import Target
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import Permanent, Transient

UNTRUSTED = (
    "has a certificate that cannot be trusted; "
    "SSL_CERT_FILE may name a file with the authorities of your own network"
)
CONNECT_S = 5.0  # to each address; and the look-up, and what a proxy and TLS take
MOST_ADDRESSES = 4  # of one host that are tried, one after the other

# What a proxy answers that only a human can mend: it wants a password, or forbids the place.
_FORBIDDEN = (HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.FORBIDDEN)


@cache
def system_authorities() -> ssl.SSLContext:
    """Return whom this machine trusts; reading that takes longer than the loop may stand still."""
    return ssl.create_default_context()


class Dialer:
    """Makes connections to a place, which may lead through a proxy.

    The operator named the proxy, so it may have any address that is not odd anywhere. A place
    behind it is judged if it is an address; what a name means there only the proxy knows.
    """

    def __init__(
        self,
        target: Target,
        clock: Clock,
        *,
        allowed: Allowed,
        resolver: Resolver,
        proxy: Proxy | None = None,
        authorities: Callable[[], ssl.SSLContext] = system_authorities,
    ) -> None:
        self._target = target
        self._clock = clock
        self._allowed = allowed
        self._resolver = resolver
        self._proxy = proxy
        self._authorities = authorities
        by = "" if proxy is None else f" (by the proxy {proxy.target.host!r})"
        self._name = f"{target.host!r}{by}"

    async def connect(self) -> Connection:
        """Return a connection over which requests to the place may be sent."""
        if self._proxy is None:
            return await self._connected(self._target, self._allowed)
        literal = self._target.address
        if literal is not None and not self._allowed.permits(self._target.host, literal):
            raise AddressRefused(f"{self._target.host!r} is an address that is not public")
        nearer = self._proxy.target
        connection = await self._connected(nearer, allow([nearer.host]))
        if self._target.scheme == "https":
            try:
                await self._tunnel(connection, self._proxy)
            except BaseException:
                connection.abort()
                raise
        return connection

    async def _connected(self, place: Target, allowed: Allowed) -> Connection:
        loop = asyncio.get_running_loop()
        tls = await self._tls() if place.scheme == "https" else None
        failure = f"{place.place!r} cannot be connected to"
        for address in await self._addresses(place, allowed):
            try:
                async with time_limit(self._clock, CONNECT_S):
                    _, connection = await loop.create_connection(
                        lambda: Connection(self._name, loop),
                        address,
                        place.port,
                        ssl=tls,
                        server_hostname=None if tls is None else place.host,
                    )
                return connection
            except TimeoutError:
                failure = f"{place.host!r} took too long to connect"
            except ssl.SSLCertVerificationError:
                failure = f"{place.host!r} {UNTRUSTED}"
            except OSError:
                continue
        raise OutOfReach(failure, is_early=True)

    async def _addresses(self, place: Target, allowed: Allowed) -> list[str]:
        try:
            async with time_limit(self._clock, CONNECT_S):
                found = await addresses_of(place.host, place.port, self._resolver, allowed)
        except TimeoutError:
            raise OutOfReach(f"{place.host!r} cannot be resolved in time", is_early=True) from None
        except Transient as error:
            raise OutOfReach(str(error), is_early=True) from error
        except Permanent as error:
            raise AddressRefused(str(error)) from error
        return [str(address) for address in found[:MOST_ADDRESSES]]

    async def _tunnel(self, connection: Connection, proxy: Proxy) -> None:
        """Have the proxy lead a connection on to the place, and speak TLS with that."""
        loop, tls, host = asyncio.get_running_loop(), await self._tls(), self._target.host
        try:
            async with time_limit(self._clock, CONNECT_S):
                connection.send(_wish(self._target, proxy))
                await connection.begun()
            self._refuse_status(connection.status, proxy)
            async with time_limit(self._clock, CONNECT_S):
                inner = await loop.start_tls(
                    connection.transport, connection, tls, server_hostname=host
                )
        except TimeoutError:
            raise OutOfReach(f"{self._name} took too long to connect", is_early=True) from None
        except ssl.SSLCertVerificationError:
            said = f"{self._name} {UNTRUSTED}"
            raise OutOfReach(said, is_early=True) from None
        except OSError:
            raise OutOfReach(f"{self._name} cannot be connected to", is_early=True) from None
        assert inner is not None
        connection.lead_on(inner)

    def _refuse_status(self, status: int, proxy: Proxy) -> None:
        said = f"the proxy {proxy.target.host!r} does not lead to it (status {status})"
        if status in _FORBIDDEN:
            raise AddressRefused(said)
        if not 200 <= status < 300:
            raise OutOfReach(said, is_early=True)

    async def _tls(self) -> ssl.SSLContext:
        return await asyncio.to_thread(self._authorities)


def _wish(target: Target, proxy: Proxy) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    place = f"{host}:{target.port}"
    passport = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{passport}\r\n".encode("latin-1")
