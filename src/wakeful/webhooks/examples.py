"""Examples: what each kind of sender would send, signed as it signs."""

from collections.abc import Mapping
from typing import Any

import msgspec

from wakeful.vocabulary.record import Record
from wakeful.webhooks.hook import Hook
from wakeful.webhooks.verification import GITHUB_ID, Scheme, signed

# A part of what https://docs.github.com/en/webhooks/webhook-events-and-payloads shows.
PING: Mapping[str, Any] = {
    "zen": "Keep it logically awesome.",
    "hook_id": 1,
    "hook": {"type": "Repository", "events": ["push"], "active": True},
    "repository": {"full_name": "octocat/hello-world"},
    "sender": {"login": "octocat"},
}
# As https://github.com/standard-webhooks/standard-webhooks recommends it.
EVENT: Mapping[str, Any] = {
    "type": "example.event",
    "timestamp": "2022-11-03T20:26:10.344522Z",
    "data": {"message": "This is an example of a webhook."},
}
PLAIN: Mapping[str, Any] = {"event": "example", "message": "This is an example of a webhook."}

_PAYLOADS = {Scheme.STANDARD: EVENT, Scheme.GITHUB: PING, Scheme.HMAC: PLAIN, Scheme.BEARER: PLAIN}


class Example(Record):
    """A request that a hook takes."""

    headers: dict[str, str]
    body: bytes


def example(hook: Hook, delivery_id: str, now: int, payload: Any = None) -> Example:
    """Return an example for a hook, or what one would look like that carries this payload."""
    said = _PAYLOADS[hook.proof.scheme] if payload is None else payload
    is_text = isinstance(said, str)
    body = said.encode() if is_text else msgspec.json.encode(said)
    headers = {
        "content-type": "text/plain; charset=utf-8" if is_text else "application/json",
        **signed(hook.proof, delivery_id, body, now),
    }
    if GITHUB_ID in headers:
        headers["x-github-event"] = (
            "push" if isinstance(said, Mapping) and "ref" in said else "ping"
        )
    return Example(headers=headers, body=body)
