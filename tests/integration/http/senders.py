"""Shared by the tests of webhooks: senders that sign as the published examples do, not as we do."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

from wakeful.runtime import Runtime
from wakeful.settings.hooks import HookSettings
from wakeful.settings.settings import Settings
from wakeful.webhooks.verification import Scheme

# https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
GITHUB_SECRET = "It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB_SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
# https://github.com/standard-webhooks/standard-webhooks: the vector that its libraries share.
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD_AT_MS = 1_614_265_330_000
STANDARD_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
SHOP_SECRET = "the secret of a shop".replace(" ", "-")
BEARER_SECRET = "a-token-of-many-letters"
OTHER_SECRET = "whsec_" + base64.b64encode(b"another secret of the sender").decode()

SCHEMES: Mapping[str, dict[str, Any]] = {
    "standard": {"verify": Scheme.STANDARD, "secret": f"{OTHER_SECRET} {STANDARD_SECRET}"},
    "github": {"verify": Scheme.GITHUB, "secret": f'another-secret-of-theirs "{GITHUB_SECRET}"'},
    "shop": {"verify": Scheme.HMAC, "secret": SHOP_SECRET, "header": "X-Shop-Signature"},
    "plain": {"verify": Scheme.BEARER, "secret": BEARER_SECRET},
}


def hooks(**fields: Any) -> dict[str, HookSettings]:
    """Return one hook of each scheme."""
    return {name: HookSettings(**{**one, **fields}) for name, one in SCHEMES.items()}


def with_hooks(**fields: Any) -> Settings:
    return Settings(drain_s=1, hooks=hooks(**fields))


def signed(name: str, body: bytes, now: int, delivery: str = "d-1") -> dict[str, str]:
    """Return the headers that the sender of a scheme puts beside a body."""
    match name:
        case "standard":
            at = datetime.fromtimestamp(now // 1000, UTC)
            return {
                "webhook-id": delivery,
                "webhook-timestamp": str(now // 1000),
                "webhook-signature": Webhook(STANDARD_SECRET).sign(delivery, at, body.decode()),
            }
        case "github":
            mac = hmac.new(GITHUB_SECRET.encode(), body, hashlib.sha256).hexdigest()
            return {"X-Hub-Signature-256": f"sha256={mac}", "X-GitHub-Delivery": delivery}
        case "shop":
            mac = hmac.new(SHOP_SECRET.encode(), body, hashlib.sha256).digest()
            return {"X-Shop-Signature": base64.b64encode(mac).decode()}
        case _:
            return {"Authorization": f"Bearer {BEARER_SECRET}"}


async def counts(runtime: Runtime) -> dict[str, int]:
    """Return how many rows each table has."""
    names = await runtime.store.read("SELECT name FROM sqlite_master WHERE type = 'table'")
    found: dict[str, int] = {}
    for (name,) in names:
        [(count,)] = await runtime.store.read(f'SELECT COUNT(*) FROM "{name}"')
        found[name] = count
    return found
