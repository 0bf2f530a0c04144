"""Quiet hours by the operator's word."""

from datetime import datetime
from typing import Literal

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.search import Instant
from wakeful.doors.http.shapes import shaped
from wakeful.services import Services, Views
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class QuietBody(Given):
    """Until when to be quiet; null ends it."""

    until: Instant | None


class QuietShape(Record):
    """Whether only people and what is urgent wake an agent now."""

    is_quiet: bool
    until: datetime | None
    by: Literal["settings", "operator"] | None


class QuietEndpoints:
    """A look at it."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/agents/{id}/quiet",
                scope="read",
                summary="Look whether an agent is quiet",
                answer=self.get,
                returns={200: QuietShape},
            )
        ]

    async def get(self, call: Call[Nothing, Nothing]) -> QuietShape:
        agent_id = self._views.agents.card(call.path["id"]).config.id
        return shaped(QuietShape, await self._views.quiet.of(agent_id))


class QuietChanges:
    """Peace, by hand."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="PUT",
                path="/api/agents/{id}/quiet",
                scope=OPERATOR,
                summary="Keep an agent quiet until a time, or end its quiet hours now",
                answer=self.put,
                body=QuietBody,
                returns={200: QuietShape},
            )
        ]

    async def put(self, call: Call[Nothing, QuietBody]) -> QuietShape:
        agent_id = self._services.views.agents.card(call.path["id"]).config.id
        wanted = call.body.until
        until = None if wanted is None else round(wanted.timestamp() * 1000)
        found = await self._services.quiet_acts.set(agent_id, until, call.principal.name)
        return shaped(QuietShape, found)
