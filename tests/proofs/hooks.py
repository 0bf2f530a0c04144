"""Webhooks of the load: signed as GitHub signs, known again by their delivery's id."""

import hashlib
import hmac
from typing import Any

import msgspec

from wakeful.settings.hooks import HookSettings
from wakeful.webhooks.verification import Scheme

NAME = "rig"
SESSION = "hooked"
SECRET = "the-secret-of-the-rig-0123456789"
HOOKS = {
    NAME: HookSettings(verify=Scheme.GITHUB, secret=SECRET, session=SESSION, text="{payload.text}")
}
FORGED, ALTERED = "forged", "altered"  # instead of what the sender would send

Posted = dict[str, Any]


def posted(draft: Posted) -> Posted:
    """Return what the sender posts of a draft: name, headers and body."""
    body = msgspec.json.encode({"text": draft["text"]})
    if draft["hook"] == ALTERED:
        body += b" "
    secret = SECRET if draft["hook"] != FORGED else SECRET[::-1]
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-hub-signature-256": f"sha256={signature}",
        "x-github-delivery": draft["dedup_key"],
    }
    return {"hook": NAME, "headers": headers, "body": body.decode()}
