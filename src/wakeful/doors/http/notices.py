"""What people should know, and were told once."""

from datetime import datetime

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.shapes import DEFAULT_PAGE, Cursor, Limit, Page, shaped
from wakeful.services import Views
from wakeful.vocabulary.record import Record


class NoticeShape(Record):
    """A sentence of the runtime for people."""

    id: str
    kind: str
    subject: str
    episode: str
    agent_id: str | None
    text: str
    created_at: datetime


class NoticesQuery(Given):
    """Which notices; `after` is the `next` of the page before."""

    agent: str | None = None
    after: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


class NoticeEndpoints:
    """What the runtime has told people."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/notices",
                scope="read",
                summary="List what people should know, newest first",
                answer=self.page,
                query=NoticesQuery,
                returns={200: Page[NoticeShape]},
            )
        ]

    async def page(self, call: Call[NoticesQuery, Nothing]) -> Page[NoticeShape]:
        query = call.query
        found = await self._views.notices.page(query.agent, query.after, query.limit + 1)
        items, more = found[: query.limit], found[query.limit :]
        return Page(
            items=[shaped(NoticeShape, notice) for notice in items],
            next=items[-1].id if more else None,
        )
