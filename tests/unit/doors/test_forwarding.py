"""A client is whoever the outermost trusted proxy saw, and never whom a client names."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.doors.http.forwarding import FORWARDED_SCHEME, Proxies
from wakeful.vocabulary.errors import InvalidInput

PROXIES = Proxies(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("127.0.0.1, 203.0.113.9", "203.0.113.9"),
        ("::ffff:127.0.0.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9,10.1.2.3", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711, fd00::5", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("203.0.113.9, unknown", "127.0.0.1"),
        ("203.0.113.9, _hidden, 10.1.2.3", "10.1.2.3"),
        ("", "127.0.0.1"),
        (",,,", "127.0.0.1"),
    ],
)
def test_the_right_most_stranger_is_the_client(chain: str, client: str):
    assert PROXIES.first_stranger("127.0.0.1", chain) == client


@given(st.lists(st.text(max_size=40), max_size=5), st.ip_addresses())
def test_nothing_that_a_client_writes_changes_who_it_is(
    forged: list[str], real: ipaddress.IPv4Address | ipaddress.IPv6Address
):
    honest = PROXIES.first_stranger("127.0.0.1", str(real))
    if PROXIES.trusts(str(real)):
        return

    assert PROXIES.first_stranger("127.0.0.1", ", ".join([*forged, str(real)])) == honest


def test_a_chain_without_end_is_looked_at_in_part():
    chain = ", ".join(["10.0.0.1"] * 100_000)

    assert PROXIES.first_stranger("127.0.0.1", f"203.0.113.9, {chain}") == "10.0.0.1"


@pytest.mark.parametrize("peer", ["203.0.113.9", "unknown", "", "2001:db8::1"])
def test_a_stranger_is_not_believed(peer: str):
    scope = {
        "client": (peer, 1),
        "scheme": "http",
        "headers": [(b"x-forwarded-for", b"127.0.0.1"), (b"x-forwarded-proto", b"https")],
    }
    before = dict(scope)

    PROXIES.believe(scope)

    assert scope == before


def test_a_proxy_that_comes_by_a_mapped_address_is_the_same_proxy():
    scope = {
        "client": ("::ffff:10.0.0.1", 1),
        "scheme": "http",
        "headers": [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-proto", b"https")],
    }

    PROXIES.believe(scope)

    assert (scope["client"], scope["scheme"]) == (("203.0.113.9", 0), "https")
    assert scope[FORWARDED_SCHEME] == "https"


@pytest.mark.parametrize("proto", [b"javascript", b"https, http", b"HTTPS", b""])
def test_a_scheme_that_is_none_is_passed_over(proto: bytes):
    scope = {
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "headers": [(b"x-forwarded-proto", proto)],
    }

    PROXIES.believe(scope)

    assert scope["scheme"] == "http"
    assert FORWARDED_SCHEME not in scope


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0", ""])
def test_what_is_no_single_network_is_refused(text: str):
    with pytest.raises(InvalidInput, match="trusted_proxies"):
        Proxies([text])


@pytest.mark.parametrize(("kind", "scheme"), [("http", "https"), ("websocket", "wss")])
def test_a_proxy_tells_the_scheme_of_requests_and_of_sockets(kind: str, scheme: str):
    scope: dict[str, Any] = {
        "type": kind,
        "client": ("127.0.0.1", 1),
        "headers": [(b"x-forwarded-proto", b"https")],
    }
    PROXIES.believe(scope)

    assert (scope["scheme"], scope[FORWARDED_SCHEME]) == (scheme, "https")


def test_what_is_too_long_for_an_address_is_none():
    assert PROXIES.first_stranger("127.0.0.1", "1" * 10_000) == "127.0.0.1"
