"""Check what a caller wants accepted, field by field, before anything is written."""

import asyncio
import binascii
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Attachment, Draft, Priority, ReadyAttachment
from wakeful.vocabulary.text import clean, is_plain

LONGEST_TEXT = 1_048_576  # characters
LONGEST_NAME = 256
LARGEST_ATTACHMENTS = 14 * 1024 * 1024  # base64 of 10 MiB
LARGEST_AT_ONCE = 16 * 1024  # base64 that is read on the event loop: some 50 microseconds
LONGEST_WINDOW_S = 7 * 86_400
DEEPEST = 2**31 - 1  # what every database holds
LATEST = 2**53  # milliseconds; what any JSON reader can hold


class AttachmentLimits(Record):
    """How much may come along with one message."""

    most_files: int = 20
    most_bytes: int = 10 * 1024 * 1024  # together


_NAMES = ("source", "scope", "dedup_key", "cause_id", "root_id", "begins", "message_id")


def checked(draft: Draft) -> Draft:
    """Return the draft, cleaned and with its canonical key, or refuse it naming the field."""
    check_length(draft.text)
    text = clean(draft.text)
    if not text.strip() and not draft.attachments:
        raise InvalidInput("text", "must not be empty")
    for field in _NAMES:
        _check_name(field, getattr(draft, field))
    if draft.dedup_window_s is not None and not 1 <= draft.dedup_window_s <= LONGEST_WINDOW_S:
        raise InvalidInput("dedup_window_s", f"must be from 1 to {LONGEST_WINDOW_S}")
    _check_times(draft)
    if draft.route is not None:
        _check_route(draft.route)
    if not 0 <= draft.depth <= DEEPEST:
        raise InvalidInput("depth", f"must be from 0 to {DEEPEST}, not {draft.depth}")
    key = keys.canonical(draft.session_key)
    if text is draft.text and key == draft.session_key:
        return draft
    return msgspec.structs.replace(draft, text=text, session_key=key)


def check_length(text: str) -> None:
    """Refuse a text that is too long, before anybody looks into it."""
    if len(text) > LONGEST_TEXT:
        raise InvalidInput("text", f"must be at most {LONGEST_TEXT} characters, not {len(text)}")


async def ready(attachments: Sequence[Attachment]) -> tuple[ReadyAttachment, ...]:
    """Read and measure what comes along, once, off the event loop unless it is small."""
    size = sum(len(attachment.data) for attachment in attachments)
    if size > LARGEST_ATTACHMENTS:
        raise InvalidInput("attachments", f"must be at most {LARGEST_ATTACHMENTS} bytes together")
    for attachment in attachments:
        _check_attachment(attachment)
    if size <= LARGEST_AT_ONCE:
        return tuple(map(_measured, attachments))
    return await asyncio.to_thread(lambda: tuple(map(_measured, attachments)))


def parse_priority(word: str, field: str = "priority") -> Priority:
    """Return the priority a caller named; anything unknown is refused, never guessed."""
    try:
        return Priority[word.upper()]
    except KeyError:
        raise InvalidInput(field, f"must be now, next or later, not {word[:40]!r}") from None


@lru_cache(maxsize=4096)  # the same few names and routes come with every stimulus
def _check_name(field: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str):  # callers without a type checker pass anything
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    if not value:
        raise InvalidInput(field, "must not be empty")
    if len(value) > LONGEST_NAME:
        raise InvalidInput(field, f"must be at most {LONGEST_NAME} characters, not {len(value)}")
    if not is_plain(value):
        raise InvalidInput(field, "must not contain control characters or lone surrogates")


def _check_attachment(attachment: Attachment) -> None:
    for field in ("name", "media_type"):
        value: str = getattr(attachment, field)
        # A model is told it in a line of ours, which it must not be able to leave.
        if not 0 < len(value) <= LONGEST_NAME or not is_plain(value):
            rule = f"{field} must be 1 to {LONGEST_NAME} characters on one line"
            raise InvalidInput("attachments", rule)


def _measured(attachment: Attachment) -> ReadyAttachment:
    try:
        content = binascii.a2b_base64(attachment.data, strict_mode=True)
    except ValueError:
        raise InvalidInput("attachments", "data must be base64") from None
    return ReadyAttachment(
        name=attachment.name,
        media_type=attachment.media_type,
        size=len(content),
        hash=hashlib.sha256(content).hexdigest(),
        data=attachment.data,
    )


@lru_cache(maxsize=4096)
def _check_route(route: Route) -> None:
    for field in route.__struct_fields__:
        value: str = getattr(route, field)
        if len(value) > LONGEST_NAME or not is_plain(value):
            raise InvalidInput(
                f"route.{field}",
                f"must be at most {LONGEST_NAME} characters, none of them control characters",
            )


def _check_times(draft: Draft) -> None:
    for field in ("not_before", "expires_at"):
        value: int | None = getattr(draft, field)
        if value is not None and not 0 <= value <= LATEST:
            raise InvalidInput(field, f"must be milliseconds since 1970, not {value}")
    if (
        draft.not_before is not None
        and draft.expires_at is not None
        and draft.expires_at <= draft.not_before
    ):
        raise InvalidInput("expires_at", "must be later than not_before")
