"""Files: what was attached in a session, and what goes along with a delivery."""

import asyncio
import base64
from collections.abc import Sequence
from datetime import datetime

from starlette.responses import Response

from wakeful.doors import naming
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Link, Nothing
from wakeful.doors.http.paging import Page, PageQuery
from wakeful.doors.http.shapes import shaped, time_of
from wakeful.outbox.outbox import Delivery, DeliveryState
from wakeful.services import Views
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import KeptAttachment

BYTES = "application/octet-stream"


class DeliveryShape(Record):
    """A message on its way out."""

    id: str
    session_key: str
    turn_id: str | None
    route: Route
    text: str
    usage_line: str | None
    attachments: Sequence[KeptAttachment]
    reply_to: str | None
    state: DeliveryState
    attempts: int
    error: str | None
    filed_at: datetime
    due_at: datetime
    settled_at: datetime | None
    sent_with: str | None
    parts: int


class AttachmentShape(Record):
    """Something that is attached to an entry; a model calls it by its `id`."""

    id: str
    hash: str
    name: str
    media_type: str
    size: int
    entry_id: str
    at: datetime


class Attachments:
    """Bytes by their hash, for whoever may see what holds them."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/sessions/{key}/attachments",
                scope=ANYBODY,
                summary="List what is attached to a conversation, newest first",
                answer=self.newest,
                query=PageQuery,
                returns={200: Page[AttachmentShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/sessions/{key}/attachments/{hash}",
                scope=ANYBODY,
                summary="Take the bytes of something that an entry of a session names",
                answer=self.of_session,
                returns={200: BYTES},
            ),
            Endpoint(
                method="GET",
                path="/api/deliveries/{id}",
                scope=ANYBODY,
                summary="Look at a message on its way out",
                answer=self.delivery,
                returns={200: DeliveryShape},
                links=(Link("GET", "/api/turns/{id}", "id", "/turn_id"),),
            ),
            Endpoint(
                method="GET",
                path="/api/deliveries/{id}/attachments/{hash}",
                scope=ANYBODY,
                summary="Take the bytes of something that goes along with a delivery",
                answer=self.of_delivery,
                returns={200: BYTES},
            ),
        ]

    async def newest(self, call: Call[PageQuery, Nothing]) -> Page[AttachmentShape]:
        session = await naming.seen_session(self._views, call.principal, call.path["key"])
        query = call.query
        found = await self._views.attachments.page(
            session.key, after=query.after, limit=query.limit
        )
        items = [
            shaped(
                AttachmentShape,
                one.kept,
                id=one.kept.id,
                entry_id=one.entry_id,
                at=time_of(one.at),
            )
            for one in found.items
        ]
        return Page(items=items, next=found.next)

    async def of_session(self, call: Call[Nothing, Nothing]) -> Response:
        session = await naming.seen_session(self._views, call.principal, call.path["key"])
        view = self._views.attachments
        found = await view.find(session.key, call.path["hash"])
        return await as_bytes(await view.read(found.kept.hash))

    async def delivery(self, call: Call[Nothing, Nothing]) -> DeliveryShape:
        return shaped(DeliveryShape, await self._seen(call))

    async def of_delivery(self, call: Call[Nothing, Nothing]) -> Response:
        delivery = await self._seen(call)
        return await as_bytes(await self._views.deliveries.attachment(delivery, call.path["hash"]))

    async def _seen(self, call: Call[Nothing, Nothing]) -> Delivery:
        """Return a delivery of a session that the caller may see; any other does not exist."""
        delivery = await self._views.deliveries.get(call.path["id"])
        try:
            await self._views.sessions.get(delivery.session_key, call.principal.viewer)
        except NotFound:
            raise NotFound("id", f"no delivery {delivery.id!r}") from None
        return delivery


async def as_bytes(data: str) -> Response:
    """Return base64 as bytes, and never as what they say they are.

    A page that somebody sent must not run as one of ours.
    """
    content = await asyncio.to_thread(base64.b64decode, data)
    headers = {"Content-Disposition": "attachment", "Content-Type": BYTES}
    return Response(content, headers=headers)
