"""Bytes, as they come, into lines."""

import codecs
from collections.abc import AsyncIterator

LONGEST_LINE = 16 * 1024 * 1024


class FileLine:
    """A line without its end; `is_too_long`: only its beginning is there."""

    __slots__ = ("has_end", "is_too_long", "number", "text")

    def __init__(self, number: int, text: bytes, *, has_end: bool, is_too_long: bool) -> None:
        self.number = number
        self.text = text
        self.has_end = has_end
        self.is_too_long = is_too_long


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[FileLine]:
    """Yield lines by number, from 1; those of white space alone are left out."""
    rest = bytearray()
    number, is_too_long = 1, False
    async for chunk in _as_utf8(chunks):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            rest += chunk[start:end]
            if rest and not rest.isspace():
                too_long = is_too_long or len(rest) > LONGEST_LINE
                yield FileLine(number, bytes(rest), has_end=True, is_too_long=too_long)
            rest.clear()
            number, start, is_too_long = number + 1, end + 1, False
        rest += chunk[start:]
        if len(rest) > LONGEST_LINE:
            del rest[80:]  # what is left of it is only counted
            is_too_long = True
    if rest and not rest.isspace():
        yield FileLine(number, bytes(rest), has_end=False, is_too_long=is_too_long)


async def _as_utf8(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a file as UTF-8 without a mark in front: shells of Windows write UTF-16."""
    head = b""
    decoder: codecs.IncrementalDecoder | None = None
    is_begun = False
    async for chunk in chunks:
        if not is_begun:
            head += chunk
            if len(head) < len(codecs.BOM_UTF8):
                continue
            is_begun = True
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                decoder = codecs.getincrementaldecoder("utf-16")("replace")
            chunk = head.removeprefix(codecs.BOM_UTF8)
        yield chunk if decoder is None else decoder.decode(chunk).encode()
    yield head if not is_begun else b"" if decoder is None else decoder.decode(b"", True).encode()
