"""Stimuli: the ledger, and taking back what still waits in it."""

import asyncio
import base64

from starlette.responses import Response

from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import (
    DEFAULT_PAGE,
    Cursor,
    Limit,
    Page,
    StimulusShape,
    stimulus_shape,
)
from wakeful.views.ledger import Filter
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.stimulus import State

BYTES = "application/octet-stream"


class StimuliQuery(Given):
    """Which stimuli; `after` is the `next` of the page before."""

    session: str | None = None
    state: State | None = None
    origin: Origin | None = None
    after: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


class Stimuli:
    """What came in, newest first."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/stimuli",
                scope=ANYBODY,
                summary="List stimuli, newest first",
                answer=self.page,
                query=StimuliQuery,
                returns={200: Page[StimulusShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/stimuli/{id}",
                scope=ANYBODY,
                summary="Look at a stimulus",
                answer=self.get,
                returns={200: StimulusShape},
                links=(
                    Link("GET", "/api/turns/{id}", "id", "/turn_id"),
                    Link("GET", "/api/turns/{id}/why", "id", "/turn_id"),
                ),
            ),
            Endpoint(
                method="GET",
                path="/api/stimuli/{id}/attachments/{hash}",
                scope=ANYBODY,
                summary="Take the bytes of an attachment",
                answer=self.attachment,
                returns={200: BYTES},
            ),
            Endpoint(
                method="DELETE",
                path="/api/stimuli/{id}",
                scope="send",
                summary="Cancel a stimulus that still waits",
                answer=self.cancel,
                returns={200: StimulusShape},
            ),
        ]

    async def page(self, call: Call[StimuliQuery, Nothing]) -> Page[StimulusShape]:
        query = call.query
        key = None if query.session is None else self._rooms.key(query.session)
        wanted = Filter(session_key=key, state=query.state, origin=query.origin)
        found = await self._rooms.ledger.page(
            call.principal.owner, wanted, query.after, query.limit + 1
        )
        items = [stimulus_shape(stimulus) for stimulus in found[: query.limit]]
        return Page(items=items, next=items[-1].id if len(found) > query.limit else None)

    async def get(self, call: Call[Nothing, Nothing]) -> StimulusShape:
        return stimulus_shape(await self._rooms.ledger.get(call.path["id"], call.principal.owner))

    async def attachment(self, call: Call[Nothing, Nothing]) -> Response:
        # Never as what it says it is: a page that somebody sent must not run as one of ours.
        data = await self._rooms.ledger.attachment(
            call.path["id"], call.path["hash"], call.principal.owner
        )
        content = await asyncio.to_thread(base64.b64decode, data)
        headers = {"Content-Disposition": "attachment", "Content-Type": BYTES}
        return Response(content, headers=headers)

    async def cancel(self, call: Call[Nothing, Nothing]) -> StimulusShape:
        stimulus = await self._rooms.ledger.get(call.path["id"], call.principal.owner)
        if not await self._rooms.intake.cancel(stimulus.id):
            raise Problem("too-late", "this stimulus does not wait any more")
        return stimulus_shape(await self._rooms.ledger.get(stimulus.id))
