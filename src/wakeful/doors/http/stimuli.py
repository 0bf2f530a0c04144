"""Stimuli: the ledger, and taking back what still waits in it."""

from starlette.responses import Response

from wakeful.doors import naming
from wakeful.doors.http.attachments import BYTES, as_bytes
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Link, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import (
    StimulusShape,
    stimulus_shape,
)
from wakeful.services import Services, Views
from wakeful.views.ledger import Filter, WaitingCounts, size_of
from wakeful.views.pages import is_full
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.stimulus import State


class StimuliQuery(PageQuery):
    """Which stimuli."""

    session: str | None = None
    state: State | None = None
    origin: Origin | None = None


class Stimuli:
    """What came in, newest first."""

    def __init__(self, views: Views) -> None:
        self._views = views

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
                path="/api/waiting",
                scope=ANYBODY,
                summary="Count the stimuli that wait, by state",
                answer=self.waiting,
                returns={200: WaitingCounts},
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
        ]

    async def page(self, call: Call[StimuliQuery, Nothing]) -> Page[StimulusShape]:
        query = call.query
        key = None if query.session is None else naming.key_of(self._views, query.session)
        wanted = Filter(session_key=key, state=query.state, origin=query.origin)
        found = await self._views.ledger.page(
            call.principal.viewer, wanted, query.after, query.limit + 1
        )
        return paged(
            found,
            query.limit,
            stimulus_shape,
            lambda stimulus: stimulus.id,
            is_full=is_full(map(size_of, found)),
        )

    async def waiting(self, call: Call[Nothing, Nothing]) -> WaitingCounts:
        return await self._views.ledger.waiting(call.principal.viewer)

    async def get(self, call: Call[Nothing, Nothing]) -> StimulusShape:
        return stimulus_shape(await self._views.ledger.get(call.path["id"], call.principal.viewer))

    async def attachment(self, call: Call[Nothing, Nothing]) -> Response:
        data = await self._views.ledger.attachment(
            call.path["id"], call.path["hash"], call.principal.viewer
        )
        return await as_bytes(data)


class Cancellations:
    """Taking back what came in."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="DELETE",
                path="/api/stimuli/{id}",
                scope="send",
                summary="Cancel a stimulus that still waits",
                answer=self.cancel,
                returns={200: StimulusShape},
            )
        ]

    async def cancel(self, call: Call[Nothing, Nothing]) -> StimulusShape:
        views = self._services.views
        stimulus = await naming.own_stimulus(views, call.principal, call.path["id"])
        if not await self._services.intake.cancel(stimulus.id):
            raise Problem("too-late", "this stimulus does not wait any more")
        return stimulus_shape(await views.ledger.get(stimulus.id))
