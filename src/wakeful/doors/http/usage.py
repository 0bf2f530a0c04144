"""Usage: what was asked of models, and what it cost."""

from wakeful.doors.http.endpoint import Call, Endpoint, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.search import Instant
from wakeful.services import Views
from wakeful.views.usage import UsageBy, UsageSum
from wakeful.vocabulary.errors import InvalidInput


class UsageQuery(PageQuery):
    """How it is summed up, and over which time."""

    by: UsageBy = UsageBy.DAY
    since: Instant | None = None
    until: Instant | None = None


class UsageEndpoints:
    """What was used."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/usage",
                scope="read",
                summary="Sum up what was asked of models, by source, agent, session or day",
                answer=self.page,
                query=UsageQuery,
                returns={200: Page[UsageSum]},
            )
        ]

    async def page(self, call: Call[UsageQuery, Nothing]) -> Page[UsageSum]:
        query = call.query
        try:
            found = await self._views.usage.page(
                query.by, _ms(query.since), _ms(query.until), query.after, query.limit + 1
            )
        except ValueError:
            raise InvalidInput("after", "must be the next of a page before") from None
        return paged(found, query.limit, lambda one: one, lambda one: one.key)


def _ms(at: Instant | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
