"""Budgets: what is left of them, and how they are raised."""

from datetime import datetime
from typing import Annotated

import msgspec

from wakeful.doors.http.endpoint import Call, Endpoint, Given
from wakeful.doors.http.endpoint import Nothing as NoBody
from wakeful.doors.http.paging import Page
from wakeful.doors.http.search import Instant
from wakeful.doors.http.shapes import shaped
from wakeful.gate.budget_acts import MOST_MONEY, MOST_TURNS, Raise
from wakeful.gate.budget_rows import AGENT
from wakeful.services import Services, Views
from wakeful.views.budgets import Money, TurnsSpent
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class BudgetShape(Record):
    """What is left of one budget; money in US dollars."""

    agent_id: str
    scope: str
    resets_at: datetime
    money: Money
    turns: TurnsSpent
    parked: int
    raised_until: datetime | None = None  # until when the caps are higher than the settings say


class RaisedShape(BudgetShape):
    """A budget that was raised, and how much goes on that waited for it."""

    released: int = 0


class BudgetsQuery(Given):
    """Whose budgets; nobody named: everybody's."""

    agent: str | None = None


class RaiseBody(Given):
    """How much is added to the caps, until when; not said: until the day ends."""

    agent: str
    money: Annotated[float, msgspec.Meta(ge=0, le=MOST_MONEY)] = 0.0
    turns: Annotated[int, msgspec.Meta(ge=0, le=MOST_TURNS)] = 0
    until: Instant | None = None
    scope: str = AGENT


class BudgetEndpoints:
    """A look at what agents may spend."""

    def __init__(self, views: Views) -> None:
        self._view = views.budgets

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/budgets",
                scope="read",
                summary="List what is left of the agents' budgets today",
                answer=self.page,
                query=BudgetsQuery,
                returns={200: Page[BudgetShape]},
            )
        ]

    async def page(self, call: Call[BudgetsQuery, NoBody]) -> Page[BudgetShape]:
        agent = call.query.agent
        found = await (self._view.all() if agent is None else self._view.of_agent(agent))
        return Page(items=[shaped(BudgetShape, one) for one in found], next=None)


class BudgetChanges:
    """More to spend, by hand."""

    def __init__(self, services: Services) -> None:
        self._view = services.views.budgets
        self._acts = services.budget_acts

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/budgets/raise",
                scope=OPERATOR,
                summary="Raise a budget; what waited for it goes on",
                answer=self.increase,
                body=RaiseBody,
                returns={200: RaisedShape},
            )
        ]

    async def increase(self, call: Call[NoBody, RaiseBody]) -> RaisedShape:
        body, who = call.body, call.principal.name
        wish = Raise(
            agent_id=body.agent,
            money=body.money,
            turns=body.turns,
            until=None if body.until is None else round(body.until.timestamp() * 1000),
            scope=body.scope,
        )
        released = await self._acts.increase(wish, who)
        own = wish.scope == AGENT
        raised = await (
            self._view.own(body.agent) if own else self._view.of_scope(body.agent, body.scope)
        )
        return shaped(RaisedShape, raised, released=released)
