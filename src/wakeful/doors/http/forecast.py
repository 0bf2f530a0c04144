"""Forecast: what the schedule alone will do, and what that will cost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.paging import Cursor
from wakeful.doors.http.shapes import shaped
from wakeful.services import ForecastOf
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.forecast import (
    MOST_DAYS,
    USUAL_DAYS,
    Assumption,
    ForecastRow,
    Happening,
    What,
)
from wakeful.vocabulary.record import Record

USUAL_LINES = 1_000
MOST_LINES = 20_000


class ForecastQuery(Given):
    """How far to look, at whom, and how much of the timeline; `after` is the `next` before."""

    days: Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS)] = USUAL_DAYS
    agent: str | None = None
    after: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LINES)] = USUAL_LINES


class HappeningShape(Record, omit_defaults=True):
    """One line of the time to come."""

    at: datetime
    session_key: str
    source: str
    what: What
    reason: str | None = None
    until: datetime | None = None


class ForecastShape(Record, rename={"since": "from"}):
    """What comes if nobody writes and nothing fails; `next` is the cursor of more timeline."""

    since: datetime
    until: datetime
    zone: str
    assumptions: Sequence[Assumption]
    rows: Sequence[ForecastRow]
    timeline: Sequence[HappeningShape]
    next: str | None


class ForecastEndpoints:
    """A look ahead; nothing is written for it."""

    def __init__(self, forecast: ForecastOf) -> None:
        self._forecast = forecast

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/forecast",
                scope="read",
                summary="Tell what ticks, heartbeats and other timers will do, and what that costs",
                answer=self.get,
                query=ForecastQuery,
                returns={200: ForecastShape},
            )
        ]

    async def get(self, call: Call[ForecastQuery, Nothing]) -> ForecastShape:
        query = call.query
        begin = (0, 0) if query.after is None else _place(query.after)
        found = await self._forecast(query.days, query.agent)
        lines = _numbered(found.timeline)
        wanted = [(place, line) for place, line in lines if place > begin]
        shown = wanted[: query.limit]
        has_more = len(shown) < len(wanted)
        return shaped(
            ForecastShape,
            found,
            timeline=[shaped(HappeningShape, line) for _, line in shown],
            next="{}.{}".format(*shown[-1][0]) if has_more else None,
        )


def _numbered(timeline: Sequence[Happening]) -> list[tuple[tuple[int, int], Happening]]:
    """Return lines with their places: an instant, and a number from 1 on within it."""
    found: list[tuple[tuple[int, int], Happening]] = []
    at, number = 0, 0
    for line in timeline:
        at, number = line.at, number + 1 if line.at == at else 1
        found.append(((at, number), line))
    return found


def _place(cursor: str) -> tuple[int, int]:
    at, _, number = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and number.isascii() and number.isdecimal()):
        raise InvalidInput("after", "must be the next of a page before")
    return int(at[:20]), int(number[:20])
