"""Search: who said what, where and when."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from wakeful.doors import naming
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Nothing
from wakeful.doors.http.paging import PageQuery
from wakeful.doors.http.shapes import time_of
from wakeful.services import Views
from wakeful.transcript.search import Role
from wakeful.transcript.words import LONGEST_QUERY, Part
from wakeful.views.pages import is_full
from wakeful.views.search import Hit, Wanted, size_of
from wakeful.vocabulary.record import Record

Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class SearchQuery(PageQuery):
    """Words, "phrases" and prefixes*, all of which must be there; the rest narrows it down."""

    q: Annotated[str, msgspec.Meta(max_length=LONGEST_QUERY)]
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=1200)] | None = None
    agent: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    role: Role | None = None
    since: Instant | None = None
    until: Instant | None = None


class HitShape(Record):
    """An entry that was found, and what surrounds the first match in it."""

    entry_id: str
    session_key: str
    transcript_id: str
    role: Role
    at: datetime
    snippet: Sequence[Part]


class SearchPage(Record):
    """Matches; `truncated`: there are more than are ranked together, and the older ones come after
    all of the newest.
    """

    items: Sequence[HitShape]
    next: str | None
    truncated: bool = False


class Search:
    """Looks through what was said."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/search",
                scope=ANYBODY,
                summary="Find what was said, the best match first",
                answer=self.page,
                query=SearchQuery,
                returns={200: SearchPage},
            )
        ]

    async def page(self, call: Call[SearchQuery, Nothing]) -> SearchPage:
        query = call.query
        wanted = Wanted(
            session_key=None
            if query.session is None
            else naming.key_of(self._views, query.session),
            agent_id=query.agent,
            role=query.role,
            since=_wall_ms(query.since),
            until=_wall_ms(query.until),
        )
        found = await self._views.search.page(
            query.q,
            viewer=call.principal.viewer,
            wanted=wanted,
            after=query.after,
            limit=query.limit + 1,
        )
        has_more = len(found) > query.limit or is_full(map(size_of, found))
        shown = found[: query.limit]
        return SearchPage(
            items=[_shape(hit) for hit in shown],
            next=shown[-1].place if has_more else None,
            truncated=any(hit.is_cut for hit in shown),
        )


def _wall_ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


def _shape(hit: Hit) -> HitShape:
    return HitShape(
        entry_id=hit.entry.id,
        session_key=hit.session_key,
        transcript_id=hit.entry.transcript_id,
        role=hit.role,
        at=time_of(hit.entry.at),
        snippet=hit.snippet,
    )
