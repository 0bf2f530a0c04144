"""What people should know, and were told once."""

from datetime import datetime

from wakeful.doors.http.endpoint import Call, Endpoint, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.shapes import shaped, time_of
from wakeful.services import Views
from wakeful.vocabulary.record import Record


class NoticeShape(Record):
    """A sentence of the runtime for people."""

    id: str
    at: datetime
    kind: str
    subject: str
    episode: str
    agent_id: str | None
    session_key: str | None
    text: str


class NoticesQuery(PageQuery):
    """Whose notices, of which kind; nothing named: all of them."""

    kind: str | None = None
    agent: str | None = None


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
        found = await self._views.notices.page(
            query.agent, query.kind, query.after, query.limit + 1
        )
        return paged(
            found,
            query.limit,
            lambda notice: shaped(NoticeShape, notice, at=time_of(notice.created_at)),
            lambda notice: notice.id,
        )
