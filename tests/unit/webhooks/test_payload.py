"""Bodies are read by their media type, and what nobody can read is refused or shown as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.webhooks.payload import UnreadableBody, read

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("kind", "body", "payload"),
    [
        ("application/json", b'{"a": [1]}', {"a": [1]}),
        ("Application/CloudEvents+JSON; charset=utf-8", b'{"a": 1}', {"a": 1}),
        ("application/json", b'{"a": "\\ud800"}', {"a": "\ufffd"}),
        ("application/json", b"", None),
        (FORM, b"a=1&b=%20x&a=2", {"a": "1", "b": " x"}),
        (FORM, b"payload=%7B%22ref%22%3A%22main%22%7D", {"ref": "main"}),
        (FORM, b"payload=no+json", {"payload": "no json"}),
        ("text/plain", b'{"a": 1}', None),
        ("", b'{"a": 1}', None),
    ],
)
def test_a_payload_is_read_by_its_media_type(kind: str, body: bytes, payload: object):
    assert read({"content-type": kind}, body).payload == payload


@pytest.mark.parametrize("body", [b"{", b'{"a": "\xff"}', b"[" * 100_000, b"{'a': 1}"])
def test_json_that_cannot_be_read_is_refused_only_where_somebody_asks_for_it(body: bytes):
    headers = {"content-type": "application/json"}

    with pytest.raises(UnreadableBody):
        read(headers, body)
    assert read(headers, body, has_payload=False).payload is None


def test_a_form_of_too_many_fields_is_refused():
    with pytest.raises(UnreadableBody, match="at most 1000 fields"):
        read({"content-type": FORM}, b"a&" * 1001)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/plain; charset=latin-1", "é"),
        ("text/plain", "\ufffd"),
        ("text/plain; charset=nonsense", "\ufffd"),
        ("text/plain; charset=base64", "\ufffd"),
        ("text/plain; charset=undefined", "\ufffd"),
    ],
)
def test_text_is_read_in_its_encoding_or_in_ours(kind: str, text: str):
    assert read({"content-type": kind}, b"\xe9").body == text


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("punycode", b"a-" + b"a" * 200_000),  # half a minute
        ("utf-7", b"+2AA-"),  # half a character, which nothing can store
        ("unicode_escape", rb"\ud800"),
    ],
)
def test_no_sender_chooses_a_codec_that_takes_for_ever_or_makes_half_characters(
    charset: str, body: bytes
):
    delivered = read({"content-type": f"text/plain; charset={charset}"}, body)

    assert delivered.body == body.decode()


@given(st.binary(max_size=200), st.text(max_size=30))
def test_any_bytes_are_some_text(body: bytes, charset: str):
    headers = {"content-type": f"text/plain; charset={charset}"}

    assert isinstance(read(headers, body).body, str)
