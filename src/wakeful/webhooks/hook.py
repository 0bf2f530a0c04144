"""A hook: what an operator chose of one sender of webhooks, checked and ready to be used."""

import hashlib
from collections.abc import Mapping

from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import NO_STORM_OVERRIDES, Priority, StormOverrides
from wakeful.vocabulary.text import is_plain
from wakeful.webhooks.payload import read
from wakeful.webhooks.template import Delivered, Template
from wakeful.webhooks.verification import Proof

LONGEST_TEXT = 1_048_576  # characters, as of every message
LONGEST_KEY = 256
NO_TEXT = "(a webhook without text)"


class Hook(Record):
    """One sender of webhooks."""

    name: str
    proof: Proof
    agent_id: str
    session_key: SessionKey
    has_session: bool  # one was chosen; else it is the agent's Activity
    priority: Priority
    text: Template
    dedup: Template | None  # None: by the id that the scheme has for a delivery
    dedup_window_s: int
    tools: tuple[str, ...] = ()  # that its turns have beyond the read-only ones
    storm: StormOverrides = NO_STORM_OVERRIDES


class HookMessage(Record):
    """What a delivery says, and the key by which it is known again."""

    text: str
    dedup_key: str | None


def message_of(
    hook: Hook, headers: Mapping[str, str], body: bytes, delivery_id: str | None
) -> HookMessage:
    """Return what a proved delivery says, by the hook's templates."""
    looks_inside = any(one.has_payload for one in (hook.text, hook.dedup) if one is not None)
    delivered = read(headers, body, has_payload=looks_inside)
    text = hook.text.rendered(delivered, LONGEST_TEXT)
    return HookMessage(
        text=text if text.strip() else NO_TEXT,
        dedup_key=_dedup_key(hook, delivered, delivery_id),
    )


def _dedup_key(hook: Hook, delivered: Delivered, delivery_id: str | None) -> str | None:
    own = "" if hook.dedup is None else hook.dedup.rendered(delivered, LONGEST_TEXT)
    key = own.strip() or delivery_id
    if key is None or (len(key) <= LONGEST_KEY and is_plain(key)):
        return key
    return f"sha256 {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"
