"""A url means one thing, or is refused: what two parsers could read in two ways never passes."""

from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wakeful.net.target import Target, parse
from wakeful.vocabulary.errors import InvalidInput

REFUSED = [
    "",
    "example.com",
    "//example.com",
    "/path",
    "http:",
    "http://",
    "http:///path",
    "http:example.com",
    "http:/example.com",
    # Other schemes.
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "ws://example.com/",
    "javascript://example.com/%0aalert(1)",
    "unix:///run/docker.sock",
    " http://example.com/",
    "\thttp://example.com/",
    "ht\ntp://example.com/",
    # User names: who is the host?
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://a@b@127.0.0.1/",
    "http://@example.com/",
    "http://%40127.0.0.1/",
    # Backslashes, spaces, control characters.
    "http://example.com\\@127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http://127.0.0.1\\.example.com/",
    "http://example.com\t.evil.test/",
    "http://exa mple.com/",
    "http://example.com/\r\nHost: evil.test",
    "http://example.com/a b",
    "http://example.com\x00.evil.test/",
    "http://example.com\x7f/",
    # Fragments, and hosts behind them.
    "http://example.com#@127.0.0.1/",
    "http://example.com/#fragment",
    "http://example.com#",
    # Dots.
    "http://example.com./",
    "http://localhost./",
    "http://127.0.0.1./",
    "http://.example.com/",
    "http://example..com/",
    "http://./",
    # Letters beyond ASCII that fold into others.
    "http://ⓔxample.com/",
    "http://127。0。0。1/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://①②⑦.0.0.1/",
    "http://loc\u00adalhost/",
    "http://faß.test/",
    "http://ex\u2100mple.com/",
    "http://example.com\uff0f.evil.test/",
    "http://example.com/ä",
    # Percent signs in hosts.
    "http://127%2e0%2e0%2e1/",
    "http://%6cocalhost/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    # Addresses in other spellings.
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0x7F.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://0x/",
    "http://127.0.0.01/",
    "http://127.0.0.256/",
    "http://127.0.0.1.2/",
    "http://example.1/",
    "http://1.2.3.0x4/",
    "http://[127.0.0.1]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]evil.test/",
    "http://[::1]@example.com/",
    "http://[v1.fe80]/",
    "http://[]/",
    # Ports.
    "http://example.com:/",
    "http://example.com:0/",
    "http://example.com:00080/",
    "http://example.com:65536/",
    "http://example.com:99999999999999999999/",
    "http://example.com:-1/",
    "http://example.com:+80/",
    "http://example.com:8o/",
    "http://example.com:80:81/",
    "http://example.com:\u0668\u0660/",
    # Labels.
    "http://-example.com/",
    "http://example-.com/",
    "http://exa*mple.com/",
    "http://exa,mple.com/",
    f"http://{'a' * 64}.com/",
    f"http://{'.'.join(['a' * 60] * 5)}/",
    f"http://example.com/{'a' * 2048}",
    # Paths.
    "http://example.com/%",
    "http://example.com/%zz",
    "http://example.com/<script>",
    'http://example.com/"',
    "http://example.com/a|b",
]


@pytest.mark.parametrize("url", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused_without_being_repeated(url: str):
    with pytest.raises(InvalidInput, match=r"^outbound\.x\.url: (must|has)") as caught:
        parse(url, "outbound.x.url")

    assert "evil" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "path"),
    [
        ("http://example.com", "http", "example.com", 80, "/"),
        ("https://example.com/", "https", "example.com", 443, "/"),
        ("HTTPS://Example.COM:8443/A?b=C", "https", "example.com", 8443, "/A?b=C"),
        ("http://example.com?@127.0.0.1", "http", "example.com", 80, "/?@127.0.0.1"),
        ("http://example.com/@127.0.0.1/..;/x", "http", "example.com", 80, "/@127.0.0.1/..;/x"),
        ("http://xn--fa-hia.test/", "http", "xn--fa-hia.test", 80, "/"),
        ("http://under_score.test:65535/", "http", "under_score.test", 65535, "/"),
        ("http://1.2.3.4:1/", "http", "1.2.3.4", 1, "/"),
        ("http://[::FFFF:1.2.3.4]/", "http", "::ffff:102:304", 80, "/"),
        ("http://[2001:DB8:0::1]:81/%2F", "http", "2001:db8::1", 81, "/%2F"),
        ("http://4chan.test/", "http", "4chan.test", 80, "/"),
        ("http://0x7f.test/", "http", "0x7f.test", 80, "/"),
    ],
)
def test_what_can_be_read_in_one_way_is_taken_apart(
    url: str, scheme: str, host: str, port: int, path: str
):
    assert parse(url) == Target(scheme=scheme, host=host, port=port, path=path)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://example.com:80/", "example.com"),
        ("https://example.com:80/", "example.com:80"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
    ],
)
def test_the_receiver_is_told_the_name_and_an_unusual_port(url: str, place: str):
    assert parse(url).place == place


PIECES = st.sampled_from(
    [
        *(
            "http://",
            "https://",
            "example.com",
            "127.0.0.1",
            "[::1]",
            "0x7f",
            "1",
            "a",
            "localhost",
        ),
        *(
            "@",
            ":",
            "/",
            "\\",
            "?",
            "#",
            ".",
            "%",
            "%40",
            "%2e",
            "[",
            "]",
            "80",
            "0",
            "-",
            "_",
            " ",
        ),
        *("\t", "\n", "\x00", "ß", "。", "①", "\u00ad", ";", "&", "=", "//", "xn--"),
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.booleans())
@example("example.com?@127.0.0.1", True)
def test_whatever_is_accepted_other_parsers_read_the_same_way(text: str, has_scheme: bool):
    url = f"http://{text}" if has_scheme else text
    try:
        target = parse(url)
    except InvalidInput:
        return

    split, other = urlsplit(url), httpx2.URL(url)
    usual = {"http": 80, "https": 443}[target.scheme]
    assert (split.scheme, split.port or usual) == (target.scheme, target.port)
    assert (other.scheme, other.port or usual) == (target.scheme, target.port)
    spelt = target.host if target.address is None else str(target.address)
    assert {split.hostname, other.raw_host.decode()} == {spelt}
