"""A peer is counted under one name, however its address is spelled."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from wakeful.doors.http.addresses import canonical_address


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_ipv4_address_is_one_name(address: ipaddress.IPv4Address):
    """T7: nobody gets more guesses by spelling where they are in another way."""
    mapped = ipaddress.IPv6Address(f"::ffff:{address}")

    names = {
        canonical_address(spelling)
        for spelling in (
            str(address),
            f"::ffff:{address}",
            str(mapped),
            mapped.exploded,
            mapped.exploded.upper(),
            f"{mapped}%eth0",
        )
    }
    assert names == {str(address)}


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_a_whole_ipv6_network_is_one_name(address: ipaddress.IPv6Address, host: int):
    if address.ipv4_mapped is not None:
        return
    network = int(address) >> 64 << 64
    neighbour = ipaddress.IPv6Address(network | host)
    if neighbour.ipv4_mapped is not None:
        return

    assert canonical_address(str(address)) == canonical_address(neighbour.exploded)


def test_what_is_no_address_is_its_own_name():
    assert canonical_address("unknown") == "unknown"
