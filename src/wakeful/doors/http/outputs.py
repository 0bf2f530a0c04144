"""Outputs: what a tool said beyond what its model was shown."""

from typing import Annotated

import msgspec

from wakeful.access import rules
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.shapes import shaped
from wakeful.services import Views
from wakeful.views.outputs import LARGEST_PAGE
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record

LARGEST_OFFSET = 2**31 - 2


class OutputQuery(Given):
    """Which part of the output."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_OFFSET)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE


class OutputShape(Record):
    """A part of an output; `next` is the offset of what follows, or null."""

    id: str
    session_key: str
    tool: str
    text: str
    offset: int
    size: int
    next: int | None


class Outputs:
    """The words of tools."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/outputs/{id}",
                scope=ANYBODY,
                summary="Read an output that was cut, by the id that the cut names",
                answer=self.get,
                query=OutputQuery,
                returns={200: OutputShape},
            )
        ]

    async def get(self, call: Call[OutputQuery, Nothing]) -> OutputShape:
        output_id, outputs = call.path["id"], self._views.outputs
        session_key = await outputs.session_of(output_id)
        owner = await self._views.sessions.owner_of(session_key)
        if not rules.may_see(call.principal, owner):
            raise NotFound("id", f"no output {output_id[:80]!r}")
        found = await outputs.read(output_id, offset=call.query.offset, limit=call.query.limit)
        return shaped(OutputShape, found)
