"""Only what the whole internet can reach is public; the rest must have been named."""

import ipaddress
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.net.addresses import NOBODY, allow, is_public
from wakeful.vocabulary.errors import InvalidInput

NOT_PUBLIC = [
    *("0.0.0.0", "0.0.0.1", "0.255.255.255"),
    *("10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.254"),
    *("168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.1", "192.0.0.9", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::8.8.8.8"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "64:ff9b:1:ffff::7f00:1"),
    *(
        "100::1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
    ),
    *("2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1"),
    *(
        "fc00::1",
        "fd00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    ),
    *("4000::1", "8000::1", "2606:4700::1%1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "223.255.255.254"),
    *("2606:4700::1", "2a00:1450::1"),
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_of_a_special_kind_is_not_public(text: str):
    assert not is_public(ip_address(text))
    assert not NOBODY.permits("example.com", ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_an_ordinary_address_is_public(text: str):
    assert is_public(ip_address(text))
    assert NOBODY.permits("example.com", ip_address(text))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_nothing_is_public_that_python_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
):
    is_special = address.is_private or address.is_multicast or address.is_reserved

    assert not (is_special and is_public(address))


def test_a_name_that_was_allowed_may_lead_to_private_addresses():
    allowed = allow(["intranet.test"])

    assert allowed.permits("intranet.test", ip_address("10.0.0.1"))
    assert allowed.permits("intranet.test", ip_address("::1"))
    assert not allowed.permits("other.test", ip_address("10.0.0.1"))
    assert not allowed.permits("x.intranet.test", ip_address("10.0.0.1"))


@pytest.mark.parametrize(
    "text",
    [
        *("169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "fe80::1"),
        *("ff02::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
        *("2002:a9fe:a9fe::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"),
    ],
)
def test_a_name_that_was_allowed_never_leads_to_metadata_or_to_many(text: str):
    assert not allow(["intranet.test"]).permits("intranet.test", ip_address(text))


def test_a_network_that_was_allowed_holds_for_every_name_and_nothing_beside_it():
    allowed = allow(["10.1.0.0/16", "fd00::/8", "127.0.0.1"])

    assert allowed.permits("any.test", ip_address("10.1.2.3"))
    assert allowed.permits("any.test", ip_address("fd00::1"))
    assert allowed.permits("127.0.0.1", ip_address("127.0.0.1"))
    assert not allowed.permits("any.test", ip_address("10.2.0.1"))
    assert not allowed.permits("any.test", ip_address("127.0.0.2"))
    assert not allowed.permits("any.test", ip_address("::ffff:10.1.2.3"))


@pytest.mark.parametrize("entry", ["", "Upper.test", "x.test.", "10.0.0.1/8", "127.1", "*.test"])
def test_an_allow_list_refuses_what_could_never_match(entry: str):
    with pytest.raises(InvalidInput, match="allow: must hold host names"):
        allow([entry])
