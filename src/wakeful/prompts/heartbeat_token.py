"""The word by which an agent says that nothing needs attention."""

import re
from typing import Literal

from wakeful.vocabulary.record import Record

TOKEN = "HEARTBEAT_OK"
ACK_MAX_CHARS = 300

_FAR = 500  # characters of markup that may stand around the token
# What models put around a word: emphasis, code, tags. One character a time: no run of them is
# tried in more ways than one.
_OPENING = re.compile(r"(?:[*_~`]|<[A-Za-z][^<>]{0,200}>|&nbsp;|\s)*")
_CLOSING = re.compile(r"(?:[*_~`]|</[A-Za-z][^<>]{0,200}>|&nbsp;|\s|[.!])*")
_CLOSED_AT_ONCE = re.compile(r"(?:[*_~`]|</[A-Za-z][^<>]{0,200}>)*")
_OPENED_AT_ONCE = re.compile(r"(?:[*_~`]|<[A-Za-z][^<>]{0,200}>)*\Z")
_GOES_ON = re.compile(r"_*[^\W_]")
_WENT_BEFORE = re.compile(r"[^\W_]_*\Z")


class Stripped(Record):
    """What is left of an answer."""

    should_skip: bool  # nothing of it is delivered
    text: str
    did_strip: bool


def strip_heartbeat_token(
    raw: str,
    mode: Literal["heartbeat", "message"] = "heartbeat",
    max_ack_chars: int = ACK_MAX_CHARS,
) -> Stripped:
    """Take the token from both ends of an answer, as a whole word; in the middle it stays.

    What is left of a heartbeat's answer, if it is short, only says the same in more words.
    """
    text = raw.strip()
    while (left := _without_last(_without_first(text)).strip()) != text:
        text = left
    did_strip = text != raw.strip()
    is_empty = not text or (did_strip and not any(map(str.isalnum, text)))
    is_brief = mode == "heartbeat" and did_strip and len(text) <= max_ack_chars
    if is_empty:
        text = ""
    return Stripped(
        should_skip=is_empty or is_brief, text=text if did_strip else raw, did_strip=did_strip
    )


def _without_first(text: str) -> str:
    before, token, after = text.partition(TOKEN)
    if not token or len(before) > _FAR or not _OPENING.fullmatch(before):
        return text
    if _GOES_ON.match(after):
        return text
    closed = _CLOSED_AT_ONCE.match(after)
    assert closed is not None
    # A mark opened before the token and closed later belongs to the rest of the text.
    opened = "" if closed[0] or not after.strip() else before.strip()
    return opened + after[closed.end() :].lstrip()


def _without_last(text: str) -> str:
    before, token, after = text.rpartition(TOKEN)
    if not token or len(after) > _FAR or not _CLOSING.fullmatch(after):
        return text
    if _WENT_BEFORE.search(before[-_FAR:]):
        return text
    opened = _OPENED_AT_ONCE.search(before[-_FAR:])
    assert opened is not None
    closed = "" if opened[0] or not before.strip() else after.strip().strip(".!")
    return before[: len(before) - len(opened[0])].rstrip() + closed
