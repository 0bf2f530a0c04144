"""Signatures of Standard Webhooks: who has the secret can tell that a body is ours, and new."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook

from wakeful.vocabulary.errors import InvalidInput

PREFIX = "whsec_"
SHORTEST_KEY, LONGEST_KEY = 24, 64  # bytes, as the scheme asks


def read_keys(secrets: str, field: str = "secret") -> tuple[bytes, ...]:
    """Return the keys in a text of one or more secrets with white space between them."""
    keys = tuple(_key(secret, field) for secret in secrets.split())
    if not keys:
        raise InvalidInput(field, "must not be empty")
    return keys


def sign(keys: Sequence[bytes], message_id: str, body: bytes, now: int) -> Mapping[str, str]:
    """Return the headers of a body: one signature for each key, so that keys can be exchanged."""
    at = datetime.fromtimestamp(now // 1000, UTC)
    text = body.decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(now // 1000),
        "webhook-signature": " ".join(Webhook(key).sign(message_id, at, text) for key in keys),
    }


def _key(secret: str, field: str) -> bytes:
    text = secret.removeprefix(PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise InvalidInput(
            field,
            f"must be {SHORTEST_KEY} to {LONGEST_KEY} random bytes in base64, for example from "
            "`openssl rand -base64 32`",
        )
    return key
