"""Outputs: what a tool said beyond what its model was shown."""

from typing import Annotated

import msgspec

from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.rooms import Rooms
from wakeful.views.outputs import LARGEST_PAGE, OutputView
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR

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

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._view = OutputView(rooms.store)

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
        output_id, owner = call.path["id"], call.principal.owner
        session_key = await self._view.session_of(output_id)
        if owner != OPERATOR and await self._rooms.sessions.owner_of(session_key) != owner:
            raise NotFound("id", f"no output {output_id[:80]!r}")
        found = await self._view.read(output_id, offset=call.query.offset, limit=call.query.limit)
        return OutputShape(
            id=found.id,
            session_key=found.session_key,
            tool=found.tool,
            text=found.text,
            offset=found.offset,
            size=found.size,
            next=found.next,
        )
