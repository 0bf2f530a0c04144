"""The guard: turns a host into the very addresses that may be connected to, once a request."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Thread

from wakeful.net.addresses import Allowed
from wakeful.net.target import Address
from wakeful.vocabulary.errors import Permanent, Transient

# Returns the addresses of a host, the best first.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the machine, as every other program on it does.

    Each look-up has a thread of its own, which nobody waits for: a name server that does not
    answer must hold up neither other look-ups nor the end of the process, as it would in a pool.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(found: Sequence[str] | Exception) -> None:
        if answer.done():  # nobody waits for it any more
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
        except Exception as error:
            found = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, found)

    Thread(target=look_up, name="look up a host", daemon=True).start()
    return await answer


async def addresses_of(
    host: str, port: int, resolver: Resolver, allowed: Allowed
) -> tuple[Address, ...]:
    """Resolve a host once and return its addresses; raise if even one may not be reached.

    Must be called once for each connection, and nothing but its answer may be connected to.
    """
    found = _literal(host) or await _resolved(host, port, resolver)
    if not all(allowed.permits(host, address) for address in found):
        raise Permanent(f"{host!r} leads to an address that is not public")
    return found


async def _resolved(host: str, port: int, resolver: Resolver) -> tuple[Address, ...]:
    try:
        found = await resolver(host, port)
        addresses = tuple(map(ipaddress.ip_address, found))
    # ValueError: it answered with something else than addresses. RuntimeError: no thread is left.
    except (OSError, ValueError, RuntimeError) as error:
        raise Transient(f"{host!r} cannot be resolved") from error
    if not addresses:
        raise Transient(f"{host!r} has no address")
    return addresses


def _literal(host: str) -> tuple[Address, ...]:
    try:
        return (ipaddress.ip_address(host),)
    except ValueError:
        return ()
