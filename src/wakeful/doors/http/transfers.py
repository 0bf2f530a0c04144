"""Transfers: transcripts leave as files, and files become sessions."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from wakeful.doors import naming
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.shapes import shaped
from wakeful.services import Services
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.transcript.jsonl.file import Trouble
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey

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
    """What became of a file; `told` has the first hundred of its troubles.

    `unknown` counts lines of kinds that nobody here reads, `unread_blocks` pieces of messages
    that no model is shown; they leave with the next export.
    """

    session_key: str
    transcript_id: str | None
    entries: int
    branches: int
    troubles: int
    told: Sequence[Trouble]
    unknown: int = 0
    unread_blocks: int = 0


class Transfers:
    """Files of transcripts."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._views = services.views

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
        session = await naming.seen_session(self._views, call.principal, call.path["key"])
        store = self._views.store
        wanted = await source(store, SessionKey(session.key), call.query.transcript)
        headers = {"Content-Disposition": f'attachment; filename="{wanted.transcript_id}.jsonl"'}
        return StreamingResponse(export(store, wanted), media_type=LINES, headers=headers)

    async def take(self, call: Call[ImportQuery, Nothing]) -> ImportShape:
        query, views = call.query, self._views
        key = None if query.session is None else naming.key_of(views, query.session)
        if key is not None:
            views.agents.card(keys.agent_of(key))
        report = await self._services.imports.run(
            call.request.stream(), key, by=call.principal.name, is_trial=query.dry_run
        )
        return shaped(ImportShape, report)
