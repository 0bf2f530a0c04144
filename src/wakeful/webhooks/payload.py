"""Payloads: what a body says, read by its media type once its sender is proved."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.text import charset_of, clean, with_whole_surrogates
from wakeful.webhooks.template import PAYLOAD, Delivered

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000

_CHARSET = re.compile(r"(?i);\s*charset=\"?([\w.:-]{1,40})")


class UnreadableBody(InvalidInput):
    """The body is not what its media type says."""


def read(headers: Mapping[str, str], body: bytes, *, has_payload: bool = True) -> Delivered:
    """Read JSON, a form or plain text; whatever is neither JSON nor a form is text.

    Where nobody asks for the payload, the body is text whatever it says it is.
    """
    said = headers.get("content-type", "")
    text = _decoded(body, _CHARSET.search(said))
    kind = said.partition(";")[0].strip().lower()
    payload: Any = None
    if has_payload and kind == FORM:
        payload = _form(text)
    elif has_payload and kind.endswith(("/json", "+json")) and text.strip():
        payload = _json(body)
    return Delivered(headers=headers, body=text, payload=payload)


def _decoded(body: bytes, charset: re.Match[str] | None) -> str:
    return clean(body.decode(charset_of(charset[1] if charset else ""), "replace"))


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(with_whole_surrogates(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UnreadableBody("body", "is not JSON that can be read") from None


def _form(text: str) -> Any:
    """Return the fields of a form; one that only carries JSON, as GitHub's does, is that JSON."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise UnreadableBody("body", f"must have at most {MOST_FIELDS} fields") from None
    fields = dict(reversed(pairs))  # the first of a name counts
    if fields.keys() == {PAYLOAD}:
        try:
            return _json(fields[PAYLOAD].encode("utf-8", "replace"))
        except UnreadableBody:
            pass
    return fields
