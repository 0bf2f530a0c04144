"""Turns: look, wait, abort, and ask why."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated

import msgspec

from wakeful.access.principal import Principal
from wakeful.doors import naming
from wakeful.doors.http.approvals import ApprovalShape, approval_shape
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.paging import Page, PageQuery
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import (
    StimulusShape,
    TurnShape,
    shaped,
    stimulus_shape,
    turn_shape,
)
from wakeful.services import Services, Views
from wakeful.turns.turns import Turn
from wakeful.views.turns import TurnFilter
from wakeful.views.why import ChainLink
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record

DEFAULT_WAIT_S = 15.0
LONGEST_WAIT_S = 120


class TimeoutQuery(Given):
    """How many seconds to wait."""

    timeout: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_WAIT_S)] = DEFAULT_WAIT_S


class TurnsQuery(PageQuery):
    """Which turns; a day is that of the user's zone, and of their beginning."""

    session: str | None = None
    origin: Origin | None = None
    day: date | None = None


class AskShape(Record):
    """One question to a model."""

    step: int
    attempt: int
    epoch: int
    purpose: str  # what was asked for: a reply, or a summary of the conversation
    state: str
    asked_at: datetime
    settled_at: datetime | None
    usage: Usage | None
    error: str | None


class ToolShape(Record):
    """One call of a tool."""

    step: int
    call_id: str
    name: str
    effect: str
    state: str
    epoch: int
    intended_at: datetime
    settled_at: datetime | None


class LinkShape(Record):
    """One turn of a causal chain."""

    turn: TurnShape
    stimuli: Sequence[StimulusShape]
    more_stimuli: int  # that woke it, too, for which there was no room
    epochs: Sequence[int]
    asks: Sequence[AskShape]
    tools: Sequence[ToolShape]
    approvals: Sequence[ApprovalShape]  # what it asked, and what it answers; the operator sees them


class Why(Record):
    """Why a turn happened: it, its cause, and so on back to the first."""

    turn_id: str
    root_id: str
    chain: Sequence[LinkShape]
    next: str | None  # the turn whose chain goes on where this one was full


class Turns:
    """Thoughts, running and past."""

    def __init__(self, views: Views, streams: OpenStreams) -> None:
        self._views = views
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/turns",
                scope=ANYBODY,
                summary="List turns, open and ended, the one that began last first",
                answer=self.page,
                query=TurnsQuery,
                returns={200: Page[TurnShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/turns/{id}",
                scope=ANYBODY,
                summary="Look at a turn",
                answer=self.get,
                returns={200: TurnShape},
            ),
            Endpoint(
                method="GET",
                path="/api/turns/{id}/wait",
                scope=ANYBODY,
                summary="Wait for the end of a turn; gives it as it is when the time is over",
                answer=self.wait,
                query=TimeoutQuery,
                returns={200: TurnShape},
            ),
            Endpoint(
                method="GET",
                path="/api/turns/{id}/why",
                scope=ANYBODY,
                summary="Show what caused a turn, back to the first cause",
                answer=self.why,
                returns={200: Why},
            ),
        ]

    async def page(self, call: Call[TurnsQuery, Nothing]) -> Page[TurnShape]:
        query = call.query
        key = None if query.session is None else naming.key_of(self._views, query.session)
        wanted = TurnFilter(session_key=key, origin=query.origin, day=query.day)
        page = await self._views.turns.page(call.principal.viewer, wanted, query.after, query.limit)
        stimuli = await self._views.ledger.ids_of_turns([turn.id for turn in page.turns])
        runs = await self._views.automations.run_ids(page.turns)
        so_far = self._views.turns.words_so_far
        items = [
            turn_shape(turn, stimuli.get(turn.id, ()), so_far(turn.id), runs.get(turn.id))
            for turn in page.turns
        ]
        return Page(items=items, next=page.next)

    async def get(self, call: Call[Nothing, Nothing]) -> TurnShape:
        turn = await naming.seen_turn(self._views, call.principal, call.path["id"])
        return await _shape(self._views, turn)

    async def wait(self, call: Call[TimeoutQuery, Nothing]) -> TurnShape:
        turn = await naming.seen_turn(self._views, call.principal, call.path["id"])
        try:
            async with self._streams.wait(call.principal):
                turn = await self._views.turns.wait_for_turn(turn.id, call.query.timeout)
        except TimeoutError:
            pass  # the server stops, or the token went
        return await _shape(self._views, turn)

    async def why(self, call: Call[Nothing, Nothing]) -> Why:
        chain = await self._views.why.chain(call.path["id"], call.principal.viewer)
        runs = await self._views.automations.run_ids([link.turn for link in chain])
        return Why(
            turn_id=chain[0].turn.id,
            root_id=chain[0].turn.root_id,
            chain=[_link_shape(link, call.principal, runs.get(link.turn.id)) for link in chain],
            next=chain[-1].goes_on_at,
        )


class Aborts:
    """Ending turns."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/turns/{id}/abort",
                scope="send",
                summary="End a turn",
                answer=self.abort,
                returns={200: TurnShape},
            )
        ]

    async def abort(self, call: Call[Nothing, Nothing]) -> TurnShape:
        views = self._services.views
        turn = await naming.own_turn(views, call.principal, call.path["id"])
        if not await self._services.intake.abort(turn.id):
            raise Problem("too-late", "this turn has ended")
        return await _shape(views, await views.turns.turn(turn.id))


async def _shape(views: Views, turn: Turn) -> TurnShape:
    stimuli = await views.ledger.ids_of_turns([turn.id])
    runs = await views.automations.run_ids([turn])
    so_far = views.turns.words_so_far(turn.id)
    return turn_shape(turn, stimuli.get(turn.id, ()), so_far, runs.get(turn.id))


def _link_shape(link: ChainLink, principal: Principal, run_id: str | None) -> LinkShape:
    shown = link.approvals if principal.is_operator else ()
    return LinkShape(
        turn=turn_shape(link.turn, [one.id for one in link.stimuli], run_id=run_id),
        stimuli=[stimulus_shape(stimulus) for stimulus in link.stimuli],
        more_stimuli=link.more_stimuli,
        epochs=link.epochs,
        asks=[shaped(AskShape, ask) for ask in link.asks],
        tools=[shaped(ToolShape, tool) for tool in link.tools],
        approvals=[approval_shape(one) for one in shown],
    )
