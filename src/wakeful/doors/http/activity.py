"""Activity: the feed over every session, and how far people have read it."""

from datetime import datetime

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.paging import Page, PageQuery
from wakeful.doors.http.search import Instant
from wakeful.doors.http.shapes import shaped
from wakeful.services import Services, Views
from wakeful.views.activity import FeedFilter, FeedKind
from wakeful.views.counts import Counts
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class FeedRowShape(Record):
    """A turn that ended, something that people were told, or one end of a sleep."""

    id: str
    at: datetime
    kind: FeedKind
    agent_id: str | None
    session_key: str | None
    turn_id: str | None
    origin: str
    source: str
    trigger: str | None
    state: str
    reply: str | None
    error: str | None
    cost: float | None
    is_unread: bool
    until: datetime | None


class ActivityQuery(PageQuery):
    """What of the feed; nothing named: everything."""

    origin: Origin | None = None
    agent: str | None = None


class ReadBody(Given):
    """Up to which instant people have read the feed, of one agent or of all."""

    until: Instant
    agent: str | None = None


class UnreadShape(Record):
    """How much is left unread; 1000 of an agent are that, or more."""

    unread: int


class ActivityEndpoints:
    """What happened, newest first."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/activity",
                scope="read",
                summary="List turns that ended, notices and sleeps of every session, newest first",
                answer=self.page,
                query=ActivityQuery,
                returns={200: Page[FeedRowShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/counts",
                scope="read",
                summary="Count what badges show, with the position from which to follow events",
                answer=self.counts,
                returns={200: Counts},
            ),
        ]

    async def page(self, call: Call[ActivityQuery, Nothing]) -> Page[FeedRowShape]:
        query = call.query
        wanted = FeedFilter(agent_id=query.agent, origin=query.origin)
        page = await self._views.activity.page(wanted, query.after, query.limit)
        return Page(items=[shaped(FeedRowShape, row) for row in page.rows], next=page.next)

    async def counts(self, call: Call[Nothing, Nothing]) -> Counts:
        return await self._views.counts.get()


class ActivityChanges:
    """What people have read."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/activity/seen",
                scope=OPERATOR,
                summary="Note that people have read the feed up to an instant",
                answer=self.see,
                body=ReadBody,
                returns={200: UnreadShape},
            )
        ]

    async def see(self, call: Call[Nothing, ReadBody]) -> UnreadShape:
        body = call.body
        if body.agent is not None:
            self._services.views.agents.card(body.agent)
        until = round(body.until.timestamp() * 1000)
        return UnreadShape(unread=await self._services.activity.see(until, body.agent))
