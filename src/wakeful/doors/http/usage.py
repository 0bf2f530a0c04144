"""Usage: what was asked of models, and what it cost."""

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.search import Instant
from wakeful.doors.http.shapes import DEFAULT_PAGE, Cursor, Limit, Page
from wakeful.services import Views
from wakeful.views.usage import UsageBy, UsageSum
from wakeful.vocabulary.errors import InvalidInput


class UsageQuery(Given):
    """How it is summed up, and over which time; `after` is the `next` of the page before."""

    by: UsageBy = UsageBy.DAY
    since: Instant | None = None
    until: Instant | None = None
    after: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


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
        items, more = found[: query.limit], found[query.limit :]
        return Page(items=items, next=items[-1].key if more else None)


def _ms(at: Instant | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
