"""What agents asked people: a list of it, and the answers; for everybody but the operator, nothing.

Whoever is not the operator learns not even that there is something: 404, as for any other path.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from wakeful.approvals.acts import AlreadyDecided
from wakeful.approvals.answering import LONGEST_NOTE
from wakeful.approvals.approvals import Approval, arguments_of
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.paging import Page, PageQuery, paged
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import shaped
from wakeful.services import Services, Views
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalKind, ApprovalState
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class ApprovalShape(Record):
    """Something that an agent asked: whether a call may run, or a question."""

    id: str
    number: int
    kind: ApprovalKind
    agent_id: str
    session_key: str
    turn_id: str
    tool: str | None
    arguments: dict[str, Any] | None
    question: str | None
    state: ApprovalState
    note: str | None
    created_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    stimulus_id: str | None  # by which its session has the answer
    used_at: datetime | None


class ApprovalsQuery(PageQuery):
    """Which of them; not said: all, the newest first."""

    state: ApprovalState | None = None


class DecisionBody(Given):
    """What is decided; the note is told to the agent, and answers a question."""

    decision: ApprovalDecision
    note: Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)] | None = None


class ApprovalEndpoints:
    """What agents wait for."""

    def __init__(self, views: Views) -> None:
        self._view = views.approvals

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/approvals",
                scope=OPERATOR,
                is_hidden=True,
                summary="List what agents asked people, newest first",
                answer=self.page,
                query=ApprovalsQuery,
                returns={200: Page[ApprovalShape]},
                links=(
                    Link("GET", "/api/approvals/{id}", "id", "/items/0/id"),
                    Link("POST", "/api/approvals/{id}", "id", "/items/0/id"),
                ),
            ),
            Endpoint(
                method="GET",
                path="/api/approvals/{id}",
                scope=OPERATOR,
                is_hidden=True,
                summary="Show something that was asked, by id or number",
                answer=self.show,
                returns={200: ApprovalShape},
            ),
        ]

    async def page(self, call: Call[ApprovalsQuery, Nothing]) -> Page[ApprovalShape]:
        query = call.query
        after = None if query.after is None else _number(query.after)
        found = await self._view.page(query.state, after, query.limit + 1)
        return paged(found, query.limit, approval_shape, lambda approval: str(approval.number))

    async def show(self, call: Call[Nothing, Nothing]) -> ApprovalShape:
        return approval_shape(await self._view.find(call.path["id"]))


class ApprovalChanges:
    """The operator's word."""

    def __init__(self, services: Services) -> None:
        self._acts = services.approval_acts

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/approvals/{id}",
                scope=OPERATOR,
                is_hidden=True,
                summary="Approve, deny or answer what was asked, by id or number",
                answer=self.decide,
                body=DecisionBody,
                returns={200: ApprovalShape},
            )
        ]

    async def decide(self, call: Call[Nothing, DecisionBody]) -> ApprovalShape:
        body, who = call.body, call.principal.name
        try:
            decided = await self._acts.answer(call.path["id"], body.decision, who, body.note)
        except AlreadyDecided as error:
            raise Problem("too-late", error.rule) from None
        return approval_shape(decided)


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise InvalidInput("after", "must be the `next` of a page")
    return int(cursor)


def approval_shape(approval: Approval) -> ApprovalShape:
    """Return an approval as clients read it."""
    arguments = None if approval.arguments is None else arguments_of(approval)
    return shaped(ApprovalShape, approval, arguments=arguments)
