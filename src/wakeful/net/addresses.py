"""Which addresses may be connected to: those that anybody on the internet can reach, and more
only where the operator said so.
"""

import ipaddress
from collections.abc import Iterable

from wakeful.net.target import Address, is_name
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The registries of special addresses, written out: `is_global` differs from one Python to the next
# and lets multicast and tunnels pass.
_INTERNET = tuple(map(ipaddress.ip_network, ("0.0.0.0/0", "2000::/3")))
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carriers' own
            "127.0.0.0/8",
            "168.63.129.16/32",  # looks public, but is the host of a cloud's machine
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
            "2001::/23",  # Teredo and other protocols
            "2001:db8::/32",
            "2002::/16",  # 6to4: leads to the IPv4 address inside
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)
# Never meant by whoever trusts a name: these must be named themselves.
_ODD = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "100.100.100.200/32",  # metadata of a cloud, as are the next two and fd00:ec2::254
            "168.63.129.16/32",
            "169.254.0.0/16",
            "224.0.0.0/3",
            "::/128",
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",
            "2001::/32",  # Teredo
            "2002::/16",
            "fd00:ec2::254/128",
            "fe80::/10",
            "ff00::/8",
        ),
    )
)


class Allowed(Record):
    """What the operator lets be reached beside the internet."""

    names: frozenset[str] = frozenset()  # private addresses too, but none that is reserved
    networks: tuple[Network, ...] = ()

    def permits(self, host: str, address: Address) -> bool:
        """Tell whether this address may be connected to for this host."""
        if is_public(address) or _is_in(address, self.networks):
            return True
        return host in self.names and _plain(address) and not _is_in(address, _ODD)


NOBODY = Allowed()


def allow(entries: Iterable[str], field: str = "allow") -> Allowed:
    """Read an allow-list of names, addresses and networks."""
    names: set[str] = set()
    networks: list[Network] = []
    for entry in entries:
        try:
            networks.append(ipaddress.ip_network(entry))
        except ValueError:
            if not is_name(entry):
                rule = "must hold host names in small letters, addresses and networks"
                raise InvalidInput(field, rule) from None
            names.add(entry)
    return Allowed(names=frozenset(names), networks=tuple(networks))


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the internet and to no tunnel into somewhere else."""
    return _plain(address) and _is_in(address, _INTERNET) and not _is_in(address, _SPECIAL)


def _plain(address: Address) -> bool:
    """Tell whether an address is what it seems: no other address inside, no zone beside it."""
    if isinstance(address, ipaddress.IPv4Address):
        return True
    return address.ipv4_mapped is None and address.scope_id is None


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
