"""Forms: `multipart/form-data`, read into memory within limits that the guard enforces."""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator
from urllib.parse import unquote_to_bytes

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from wakeful.doors.http.problems import Problem
from wakeful.vocabulary.stimulus import Attachment

MOST_FIELDS = 32
MOST_FILES = 128  # more than a message may bring: it is told how many it may
LARGEST_FIELD = 1024 * 1024
_UTF_8 = frozenset({b"utf-8", b"utf8"})
_LONG_FORM = re.compile(rb";\s*filename\*\s*=([^;]*)", re.IGNORECASE)
_LONG_FORM_CHARSETS = {"utf-8": "utf-8", "iso-8859-1": "latin-1"}  # what RFC 5987 asks for

UNKNOWN_TYPE = "application/octet-stream"


async def read_form(request: Request) -> tuple[dict[str, str], tuple[Attachment, ...]]:
    """Return the fields of a form, each of which is given once, and its files."""
    _check_charset(request.headers.get("content-type", ""))
    # Whole, so that a body that breaks off leaves no open file behind in the parser.
    raw = await request.body()
    parser = _InMemory(
        request.headers,
        _one_piece(raw),
        max_files=MOST_FILES,
        max_fields=MOST_FIELDS,
        max_part_size=LARGEST_FIELD,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Problem("bad-request", f"the form cannot be read: {error.message[:200]}") from None
    try:
        return await asyncio.to_thread(_parts, form)
    finally:
        await form.close()


def _check_charset(content_type: str) -> None:
    """Refuse a form in another encoding: Python's codecs are many, and some take for ever."""
    given = parse_options_header(content_type)[1].get(b"charset", b"utf-8")
    if given.lower() not in _UTF_8:
        raise Problem("unsupported-media-type", "the charset of a form must be utf-8")


class _InMemory(MultiPartParser):
    """Starlette's parser; what somebody sends must not lie about in a folder for all."""

    spool_max_size = 16 * 1024 * 1024  # more than the guard lets through

    def on_headers_finished(self) -> None:
        part = self._current_part
        part.content_disposition = with_plain_filename(part.content_disposition or b"")
        super().on_headers_finished()


def with_plain_filename(disposition: bytes) -> bytes:
    """Return a part's header with a plain `filename`, if it has only the long form of RFC 5987.

    Forms must not have the long form (RFC 7578, 4.2), but some clients write nothing else; the
    parser takes such a file for a field.
    """
    long_form = _LONG_FORM.search(disposition)
    if long_form is None or b"filename" in parse_options_header(disposition)[1]:
        return disposition
    name = _long_name(long_form[1].decode("latin-1").strip(' "'))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return disposition + f'; filename="{quoted}"'.encode()


def _long_name(written: str) -> str:
    """Return the name that `charset'language'percent-encoded` means."""
    charset, _, rest = written.partition("'")
    _, quote, encoded = rest.partition("'")
    try:
        name = unquote_to_bytes(encoded).decode(_LONG_FORM_CHARSETS[charset.lower()])
    except (KeyError, UnicodeDecodeError):
        name = ""
    if not quote or not name:
        rule = "attachments: filename* must be UTF-8'' and a percent-encoded name"
        raise Problem("invalid-input", rule, field="attachments")
    return name


async def _one_piece(raw: bytes) -> AsyncGenerator[bytes, None]:
    yield raw


def _parts(form: FormData) -> tuple[dict[str, str], tuple[Attachment, ...]]:
    fields: dict[str, str] = {}
    files: list[Attachment] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            files.append(_attachment(value))
        elif name in fields:
            raise Problem("invalid-input", f"{name[:80]}: must be given once", field=name[:80])
        else:
            fields[name] = value
    return fields, tuple(files)


def _attachment(file: UploadFile) -> Attachment:
    return Attachment(
        name=file.filename or "file",
        media_type=file.content_type or UNKNOWN_TYPE,
        data=base64.b64encode(file.file.read()).decode(),
    )
