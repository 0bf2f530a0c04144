"""Which proxy leads to a place: the same as `httpx2` would take, but none to this machine."""

import os
from collections.abc import Mapping

import httpx2
import pytest

from wakeful.net.proxies import proxy_to
from wakeful.net.target import parse
from wakeful.vocabulary.errors import InvalidInput

PLACES = (
    "https://example.com/v1",
    "http://example.com/v1",
    "https://www.example.com",
    "https://notexample.com",
    "https://example.com:8443",
    "http://10.1.2.3:8000/v1",
    "https://[2001:db8::1]/v1",
)
ENVIRONMENTS: tuple[Mapping[str, str], ...] = (
    {},
    {"HTTPS_PROXY": "http://p:1"},
    {"https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:2"},
    {"HTTP_PROXY": "p:1"},
    {"ALL_PROXY": "http://p:1", "HTTP_PROXY": "http://q:2"},
    {"HTTPS_PROXY": "", "ALL_PROXY": "http://p:1"},
    {"ALL_PROXY": "http://p:1", "REQUEST_METHOD": "GET", "HTTP_PROXY": "http://q:2"},
    *(
        {"ALL_PROXY": "http://p:1", "NO_PROXY": excepted}
        for excepted in (
            "*",
            "example.com",
            " other.com , example.com ",
            ".example.com",
            "EXAMPLE.com",
            "example",
            "*.example.com",
            "https://example.com",
            "all://example.com",
            "example.com:8443",
            "10.1.2.3",
            "10.0.0.0/8",
            "11.0.0.0/8",
            "2001:db8::/32",
            "[2001:db8::1]",
            "foo/bar",
            "",
        )
    ),
    {"ALL_PROXY": "http://p:1", "NO_PROXY": "*", "no_proxy": "other.com"},
)


@pytest.mark.parametrize("environ", ENVIRONMENTS, ids=str)
def test_places_are_reached_as_everybody_else_reaches_them(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    client = httpx2.AsyncClient()

    for place in PLACES:
        found = proxy_to(parse(place), environ)
        taken = client._transport_for_url(httpx2.URL(place))  # pyright: ignore[reportPrivateUsage]

        assert (found is None) == (taken is client._transport), place  # pyright: ignore[reportPrivateUsage]


def test_the_variable_for_the_scheme_comes_first_and_small_letters_before_capitals():
    environ = {"ALL_PROXY": "all:1", "HTTPS_PROXY": "secure:2", "https_proxy": "small:3"}

    secure, plain = (proxy_to(parse(f"{scheme}://a.test"), environ) for scheme in ("https", "http"))

    assert secure is not None
    assert plain is not None
    assert (secure.target.host, plain.target.host) == ("small", "all")


@pytest.mark.parametrize(
    "here", ["http://localhost:11434", "http://127.0.0.1:1", "http://[::1]:1", "http://a.localhost"]
)
def test_this_machine_is_never_looked_for_at_a_proxy(here: str):
    assert proxy_to(parse(here), {"ALL_PROXY": "http://p:1"}) is None


def test_a_name_and_a_password_become_a_header():
    proxy = proxy_to(parse("https://a.test"), {"HTTPS_PROXY": "https://m%C3%A9:p%3Aw@p.test:8"})

    assert proxy is not None
    assert (proxy.target.scheme, proxy.target.host, proxy.target.port) == ("https", "p.test", 8)
    assert proxy.authorization == "Basic bcOpOnA6dw=="


@pytest.mark.parametrize(
    "value", ["socks5://p:1080", "http://s3cret:pass@p q", "http://s3cret@", "ftp://s3cret@p", "/"]
)
def test_a_proxy_that_cannot_be_used_is_told_by_its_variable_alone(value: str):
    with pytest.raises(InvalidInput) as refused:
        proxy_to(parse("https://a.test"), {"HTTPS_PROXY": value})

    assert refused.value.field == "HTTPS_PROXY"
    assert "s3cret" not in str(refused.value)
