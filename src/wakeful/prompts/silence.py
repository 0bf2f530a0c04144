"""Silence: replies that are kept but not delivered."""

import re

from wakeful.prompts.heartbeat_token import strip_heartbeat_token
from wakeful.vocabulary.record import Record

TOKENS = ("NO_REPLY", "HEARTBEAT_OK", "[SILENT]")

_WORD = "|".join(re.escape(token) for token in TOKENS)
_EDGES = re.compile(rf"\A\s*(?:{_WORD})(?!\w)\s*|\s*(?<!\w)(?:{_WORD})\s*\Z")


class Deliverable(Record):
    """What is delivered of a reply."""

    text: str
    is_silent: bool


def spoken(text: str) -> Deliverable:
    """Strip silence tokens, as whole words, from the edges; a reply of nothing else is silent."""
    left = text
    while (stripped := _EDGES.sub("", left)) != left:
        left = stripped
    left = strip_heartbeat_token(left, "message").text
    return Deliverable(text=left if left != text else text, is_silent=not left.strip())
