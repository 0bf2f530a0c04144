"""Forwarding: what a trusted proxy tells of a request that it passes on; nobody else is believed.

Only `X-Forwarded-For` and `X-Forwarded-Proto` are read. A proxy that sets these may still pass on a
`Forwarded` or `X-Real-IP` that the client made up, so those count for nothing, whoever sends them.
uvicorn's own middleware takes any word for an address and does not see through `::ffff:10.0.0.1`.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from starlette.types import Scope

from wakeful.vocabulary.errors import InvalidInput

MOST_HOPS = 16
LONGEST_ADDRESS = 64  # of IPv6 with its zone
REMEMBERED = 4096  # addresses, read once each
SCHEMES = frozenset({"http", "https"})
FORWARDED_SCHEME = "wakeful.scheme"  # in a scope: what a trusted proxy says the browser speaks


class Proxies:
    """The proxies that are trusted: single addresses and networks."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = [trusted_network(text) for text in trusted]
        self._holds = lru_cache(REMEMBERED)(self._look)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, peer: str) -> bool:
        """Tell whether an address, however it is spelled, is a proxy's."""
        address = _hop(peer) if self._networks else None
        return address is not None and self._holds(address)

    def believe(self, scope: Scope) -> None:
        """Put the client and the scheme that a trusted proxy tells in the place of its own."""
        client = scope.get("client")
        if client is None or not self.trusts(client[0]):
            return
        chain: list[str] = []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                chain.append(value.decode("latin-1"))
            elif name == b"x-forwarded-proto" and (scheme := value.decode("latin-1")) in SCHEMES:
                scope[FORWARDED_SCHEME] = scheme
                is_socket = scope.get("type") == "websocket"
                scope["scheme"] = scheme.replace("http", "ws") if is_socket else scheme
        scope["client"] = (self.first_stranger(client[0], ", ".join(chain)), 0)

    def first_stranger(self, peer: str, chain: str) -> str:
        """Return the right-most address that is no proxy's: what stands left of it is hearsay.

        A hop that is no address ends the search too: whoever told it is the last one known.
        """
        known = peer
        for hop in reversed(chain.rsplit(",", MOST_HOPS)[-MOST_HOPS:]):
            address = _hop(_without_port(hop.strip()))
            if address is None:
                break
            known = address
            if not self._holds(known):
                break
        return known

    def _look(self, known: str) -> bool:
        address = ipaddress.ip_address(known)
        return any(address in network for network in self._networks)


def trusted_network(text: str, field: str = "trusted_proxies") -> IPv4Network | IPv6Network:
    """Return the network that an address or a network stands for."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        rule = "must be an address or a network such as 10.0.0.0/8"
        raise InvalidInput(field, f"{rule}, not {text[:60]!r}") from None
    if network.prefixlen == 0:
        raise InvalidInput(field, "must not trust everybody")
    return network


def _hop(text: str) -> str | None:
    """Return the one spelling of an address; None: it is none."""
    return _canonical(text) if len(text) <= LONGEST_ADDRESS else None


@lru_cache(REMEMBERED)
def _canonical(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
