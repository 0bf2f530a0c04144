"""Transfers: transcripts leave as files, and files become sessions."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.rooms import Rooms
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.transcript.jsonl.file import Trouble
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record

LINES = "application/x-ndjson"
LARGEST_IMPORT = 4 * 1024**3


class ExportQuery(Given):
    """Which transcript of the session; without one, the one it goes on in."""

    transcript: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None


class ImportQuery(Given):
    """Which session is made, and whether the file is only tried."""

    session: Annotated[str, msgspec.Meta(min_length=1, max_length=1200)] | None = None
    dry_run: bool = False


class ImportShape(Record):
    """What became of a file; `told` has the first hundred of its troubles."""

    session_key: str
    transcript_id: str | None
    entries: int
    branches: int
    troubles: int
    told: Sequence[Trouble]


class Transfers:
    """Files of transcripts."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._importer = Importer(rooms.store, rooms.bus, Ids(rooms.clock), rooms.default_agent)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/sessions/{key}/export",
                scope=ANYBODY,
                summary="Take the transcript along, as lines of JSON",
                answer=self.export,
                query=ExportQuery,
                returns={200: LINES},
            ),
            Endpoint(
                method="POST",
                path="/api/sessions/import",
                scope="operator",
                summary="Make a session of a transcript's file",
                answer=self.take,
                query=ImportQuery,
                returns={200: ImportShape},
                largest_body=LARGEST_IMPORT,
                streamed=LINES,
            ),
        ]

    async def export(self, call: Call[ExportQuery, Nothing]) -> Response:
        words = call.path["key"]
        try:
            key = self._rooms.key(words)
        except InvalidInput:
            raise NotFound("session", f"no session {words[:120]!r}") from None
        await self._rooms.sessions.get(key, call.principal.owner)
        wanted = await source(self._rooms.store, key, call.query.transcript)
        headers = {"Content-Disposition": f'attachment; filename="{wanted.transcript_id}.jsonl"'}
        return StreamingResponse(
            export(self._rooms.store, wanted), media_type=LINES, headers=headers
        )

    async def take(self, call: Call[ImportQuery, Nothing]) -> ImportShape:
        query = call.query
        key = None if query.session is None else self._rooms.key(query.session)
        if key is not None:
            self._rooms.agents.card(keys.agent_of(key))
        report = await self._importer.run(call.request.stream(), key, is_trial=query.dry_run)
        return ImportShape(**msgspec.structs.asdict(report))
