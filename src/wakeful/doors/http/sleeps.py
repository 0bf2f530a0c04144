"""Sleep and wake by the operator's word, and a look at who sleeps."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from wakeful.doors import naming
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.shapes import shaped
from wakeful.services import Services
from wakeful.sleeps.sleeps import SleepPolicy
from wakeful.triggers.sleep_acts import LONGEST_REASON
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR

LONGEST_S = 10 * 365 * 86_400  # far beyond what any sleep is clamped to


class SleepBody(Given):
    """For how long, and why."""

    seconds: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_S)]
    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_REASON)] = ""


class EnteredShape(Record):
    """A sleep that begins; it is never shorter than a minute or longer than a day."""

    id: str
    requested_ms: int
    clamped_ms: int
    final_ms: int
    wake_at: datetime


class WokenShape(Record):
    """What came of a wake; without one, why not."""

    woken: bool
    slept_ms: int | None
    stimulus_id: str | None
    reason: str | None


class SleepRowShape(Record):
    """A sleep."""

    id: str
    owner: str
    agent_id: str
    session_key: str | None
    policy: SleepPolicy
    reason: str
    requested_ms: int
    final_ms: int
    created_at: datetime
    wake_at: datetime
    buffered: int
    dropped: int
    refused: str | None


class SleepsQuery(PageQuery):
    """Whose sleeps; nobody named: everybody's."""

    agent: str | None = None


class SleepEndpoints:
    """Rest, begun and ended by hand."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._views = services.views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/sessions/{key}/sleep",
                scope=OPERATOR,
                summary="Let a session rest until a time, or until somebody needs it",
                answer=self.sleep,
                body=SleepBody,
                returns={200: EnteredShape},
            ),
            Endpoint(
                method="POST",
                path="/api/sessions/{key}/wake",
                scope=OPERATOR,
                summary="End a session's sleep",
                answer=self.wake,
                returns={200: WokenShape},
            ),
            Endpoint(
                method="GET",
                path="/api/sleeps",
                scope="read",
                summary="List who sleeps",
                answer=self.page,
                query=SleepsQuery,
                returns={200: Page[SleepRowShape]},
            ),
        ]

    async def sleep(self, call: Call[Nothing, SleepBody]) -> EnteredShape:
        body = call.body
        acts = self._services.sleep_acts
        entered = await acts.sleep(await self._key(call), body.seconds * 1000, body.reason)
        return shaped(EnteredShape, entered)

    async def wake(self, call: Call[Nothing, Nothing]) -> WokenShape:
        return shaped(WokenShape, await self._services.sleep_acts.wake(await self._key(call)))

    async def page(self, call: Call[SleepsQuery, Nothing]) -> Page[SleepRowShape]:
        query = call.query
        found = await self._views.sleeps.page(query.agent, query.after or "", query.limit + 1)
        return paged(
            found,
            query.limit,
            lambda sleep: shaped(SleepRowShape, sleep),
            lambda sleep: sleep.owner,
        )

    async def _key(self, call: Call[Any, Any]) -> SessionKey:
        return await naming.own_session_key(self._views, call.principal, call.path["key"])
