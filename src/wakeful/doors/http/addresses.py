"""Addresses of peers: one spelling each, for counting; nothing is ever granted by one."""

import ipaddress


def canonical_address(text: str) -> str:
    """Return the one name under which a peer is counted, however its address is spelled."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        # One customer has a whole network of these.
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
