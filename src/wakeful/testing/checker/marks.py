"""Marks: how ledgers name what was said, so that it is found again in the database.

A message bears its mark in braces, `{m7}` or `{m7:…}` with whatever its reader does with the rest;
what a model was sent and what it answered are named by the hash of their bytes.
"""

import hashlib
import re
from collections.abc import Sequence

from wakeful.models.model import Reply
from wakeful.vocabulary.message import AssistantMessage, Message, encode_message

MARK = re.compile(r"\{(\w+)(?::([\w=.+&,-]*))?\}")


def marks_in(text: str) -> tuple[str, ...]:
    return tuple(match[1] for match in MARK.finditer(text))


def digest(messages: Sequence[Message]) -> str:
    """Return the hash of the very bytes that were sent."""
    return hashlib.sha256(b"\n".join(map(encode_message, messages))).hexdigest()[:32]


def digest_of_reply(reply: Reply | AssistantMessage) -> str:
    return hashlib.sha256(encode_message(reply.content)).hexdigest()[:32]
