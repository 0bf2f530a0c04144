"""The doors of a runtime: HTTP, and the receivers of webhooks."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.access.credentials import Credentials, Made
from wakeful.doors.sender import Door
from wakeful.doors.signing import read_keys
from wakeful.net.addresses import NOBODY, allow
from wakeful.net.target import parse
from wakeful.settings.settings import OutboundSettings
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Permanent

if TYPE_CHECKING:
    from wakeful.doors.http.door import HttpDoor


async def operator_token(
    credentials: Credentials, door: "HttpDoor", home: Path | None
) -> Made | None:
    """Make the operator's token if there is none yet; refuse a door to others without one."""
    has_token = door.operator_token is not None or await credentials.has_valid()
    if not door.is_local and not has_token:
        raise Permanent(
            "an address that others reach needs a token: start on 127.0.0.1 once, or add one"
        )
    return None if home is None else await credentials.operator(home, door.operator_token)


def webhook_doors(outbound: Mapping[str, OutboundSettings], clock: Clock) -> dict[str, Door]:
    """Return a door for each receiver of webhooks."""
    if not outbound:
        return {}
    # Loaded by those alone who send webhooks: HTTP and TLS take time and memory.
    from wakeful.doors.webhooks_out import WebhookOut
    from wakeful.net.client import Client

    client = Client(clock)
    return {
        name: WebhookOut(
            name,
            one.url,
            read_keys(one.secret or ""),
            client=client,
            clock=clock,
            allowed=allow([parse(one.url).host]) if one.allow_private else NOBODY,
            has_bytes=one.has_attachments,
        )
        for name, one in outbound.items()
    }
