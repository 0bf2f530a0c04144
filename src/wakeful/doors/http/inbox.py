"""The inbox: what sources leave for agents, how it is looked at, and how it is thrown away."""

from datetime import datetime
from typing import Annotated

import msgspec

from wakeful.access import rules
from wakeful.doors import inbox
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.messages import IDEMPOTENCY_KEY, answer_or_problem
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.search import Instant
from wakeful.doors.http.shapes import ReceiptShape, shaped, time_of, time_or_none
from wakeful.doors.inbox import InboxItem
from wakeful.doors.messaging import LONGEST_NAME
from wakeful.services import Services, Views
from wakeful.views.inbox import InboxFilter
from wakeful.views.pages import is_full
from wakeful.vocabulary.inbox import PriorityName
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, State, Stimulus

SOURCES = "inbox:*"  # each credential that is a source

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class InboxBody(Given):
    """What is left for an agent."""

    exact = ("source", "dedup_key")

    text: str
    priority: str = "next"
    source: Name | None = None
    dedup_key: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    expires_at: Instant | None = None


class ItemShape(Record):
    """An item of the inbox; delivered: given to a turn."""

    id: str
    created_at: datetime
    agent_id: str
    session_key: str
    priority: str
    source: str
    text: str
    dedup_key: str | None
    state: State
    state_reason: str | None
    delivered_at: datetime | None
    delivered_turn_id: str | None
    expires_at: datetime | None


class InboxQuery(PageQuery):
    """Which items; `floor` is the least urgent priority that is shown."""

    source: str | None = None
    floor: PriorityName = PriorityName.LATER
    state: State | None = None
    agent: str | None = None


class InboxEndpoints:
    """What waits, and what was read."""

    def __init__(self, views: Views) -> None:
        self._view = views.inbox

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/inbox",
                scope="read",
                summary="List what sources left for agents, newest first",
                answer=self.page,
                query=InboxQuery,
                returns={200: Page[ItemShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/inbox/{id}",
                scope="read",
                summary="Look at an item of the inbox",
                answer=self.get,
                returns={200: ItemShape},
            ),
        ]

    async def page(self, call: Call[InboxQuery, Nothing]) -> Page[ItemShape]:
        query = call.query
        wanted = InboxFilter(
            source=query.source,
            floor=Priority[query.floor.upper()],
            state=query.state,
            agent_id=query.agent,
        )
        found = await self._view.page(wanted, query.after, query.limit + 1)
        return paged(
            found,
            query.limit,
            item_shape,
            lambda item: item.id,
            is_full=is_full(len(item.text.encode()) for item in found),
        )

    async def get(self, call: Call[Nothing, Nothing]) -> ItemShape:
        return item_shape(await self._view.get(call.path["id"]))


class InboxChanges:
    """Leaving something for an agent, and throwing it away."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/inbox",
                scope=SOURCES,
                summary="Leave something for an agent; the receipt leaves when it is on disk",
                answer=self.post,
                body=InboxBody,
                headers={
                    IDEMPOTENCY_KEY: "Repeating a request with the same key within a day repeats "
                    "its first answer."
                },
                returns={202: ReceiptShape},
                links=(
                    Link("GET", "/api/inbox/{id}", "id", "/stimulus_id"),
                    Link("POST", "/api/inbox/{id}/dismiss", "id", "/stimulus_id"),
                ),
            ),
            Endpoint(
                method="POST",
                path="/api/inbox/{id}/dismiss",
                scope=SOURCES,
                summary="Throw away an item that no turn was given",
                answer=self.dismiss,
                returns={200: ItemShape},
            ),
        ]

    async def post(self, call: Call[Nothing, InboxBody]) -> tuple[int, ReceiptShape]:
        body = call.body
        item = InboxItem(
            text=body.text,
            priority=body.priority,
            source=body.source,
            dedup_key=body.dedup_key,
            idempotency_key=call.request.headers.get(IDEMPOTENCY_KEY),
            agent=body.agent,
            session=body.session,
            expires_at=(
                None if body.expires_at is None else round(body.expires_at.timestamp() * 1000)
            ),
        )
        receipt = await answer_or_problem(inbox.post(self._services, call.principal, item))
        return 202, shaped(ReceiptShape, receipt)

    async def dismiss(self, call: Call[Nothing, Nothing]) -> ItemShape:
        item = await self._services.inbox_items.dismiss(
            call.path["id"], lambda item: rules.may_dismiss(call.principal, item)
        )
        if item is None:
            raise Problem("too-late", "this item was read, or has ended")
        return item_shape(item)


def item_shape(item: Stimulus) -> ItemShape:
    return shaped(
        ItemShape,
        item,
        created_at=time_of(item.accepted_at),
        priority=item.priority.name.lower(),
        delivered_at=time_or_none(item.claimed_at),
        delivered_turn_id=item.turn_id,
    )
