"""Webhooks out: a door for each receiver of the setting `outbound`, which signs what it sends."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from wakeful.doors.signing import sign
from wakeful.net.addresses import NOBODY, Allowed
from wakeful.net.client import Client, HttpRequest
from wakeful.net.verdict import refuse_failure
from wakeful.outbox.outbox import ReadyDelivery
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.record import Record

_encode = msgspec.json.Encoder().encode


class OutgoingAttachment(Record, omit_defaults=True):
    """A file that goes along: where it can be taken, and its bytes if the receiver wants them."""

    name: str
    media_type: str
    size: int  # bytes
    hash: str  # SHA-256
    path: str  # of this server's HTTP interface; needs a token that may see the session
    data: str | None = None  # base64


class Outgoing(Record):
    """The body of a webhook; the same bytes at every attempt."""

    type: str = "message"
    id: str  # the same at every attempt
    session_key: str
    turn_id: str | None
    text: str
    address: str
    thread: str
    account: str
    created_at: str
    reply_to: str | None  # the message that it answers, as the receiver named it
    attachments: Sequence[OutgoingAttachment]


class WebhookOut:
    """The door to one receiver; returns when it answered with 2xx."""

    def __init__(
        self,
        name: str,
        url: str,
        keys: Sequence[bytes],
        *,
        client: Client,
        clock: Clock,
        allowed: Allowed = NOBODY,
        has_bytes: bool = False,
    ) -> None:
        self._name = name
        self._url = url
        self._keys = tuple(keys)
        self._client = client
        self._clock = clock
        self._allowed = allowed
        self._has_bytes = has_bytes

    async def __call__(self, delivery: ReadyDelivery) -> None:
        body = _encode(_outgoing(delivery, has_bytes=self._has_bytes))
        headers = sign(self._keys, delivery.id, body, self._clock.now())
        answer = await self._client.send(
            HttpRequest(
                method="POST",
                url=self._url,
                headers={"content-type": "application/json", **headers},
                body=body,
                allowed=self._allowed,
                most_bytes=0,
            )
        )
        refuse_failure(answer, self._name, self._clock.now())


def _outgoing(delivery: ReadyDelivery, *, has_bytes: bool) -> Outgoing:
    route = delivery.route
    return Outgoing(
        id=delivery.id,
        session_key=delivery.session_key,
        turn_id=delivery.turn_id,
        text=delivery.text,
        address=route.address,
        thread=route.thread,
        account=route.account,
        created_at=datetime.fromtimestamp(delivery.filed_at / 1000, UTC).isoformat(
            timespec="milliseconds"
        ),
        reply_to=delivery.reply_to,
        attachments=[
            OutgoingAttachment(
                name=file.name,
                media_type=file.media_type,
                size=file.size,
                hash=file.hash,
                path=f"/api/deliveries/{delivery.id}/attachments/{file.hash}",
                data=file.data if has_bytes else None,
            )
            for file in delivery.files
        ],
    )
