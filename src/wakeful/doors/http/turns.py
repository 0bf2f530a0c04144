"""Turns: look, wait, abort, and ask why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.lasting import Lasting
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import (
    StimulusShape,
    TurnShape,
    stimulus_shape,
    time_of,
    time_or_none,
    turn_shape,
)
from wakeful.turns.turns import Turn
from wakeful.views.why import Link
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record

DEFAULT_WAIT_S = 15.0
LONGEST_WAIT_S = 120


class TimeoutQuery(Given):
    """How many seconds to wait."""

    timeout: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_WAIT_S)] = DEFAULT_WAIT_S


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
    epochs: Sequence[int]
    asks: Sequence[AskShape]
    tools: Sequence[ToolShape]


class Why(Record):
    """Why a turn happened: it, its cause, and so on back to the first."""

    turn_id: str
    root_id: str
    chain: Sequence[LinkShape]


class Turns:
    """Thoughts, running and past."""

    def __init__(self, rooms: Rooms, lasting: Lasting) -> None:
        self._rooms = rooms
        self._lasting = lasting

    def endpoints(self) -> list[Endpoint]:
        return [
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
                method="POST",
                path="/api/turns/{id}/abort",
                scope="send",
                summary="End a turn",
                answer=self.abort,
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

    async def get(self, call: Call[Nothing, Nothing]) -> TurnShape:
        return await self._shape(await self._rooms.turn(call.principal, call.path["id"]))

    async def wait(self, call: Call[TimeoutQuery, Nothing]) -> TurnShape:
        turn = await self._rooms.turn(call.principal, call.path["id"])
        try:
            async with self._lasting.wait(call.principal):
                turn = await self._rooms.turns.wait_for_turn(turn.id, call.query.timeout)
        except TimeoutError:
            pass  # the server stops, or the token went
        return await self._shape(turn)

    async def abort(self, call: Call[Nothing, Nothing]) -> TurnShape:
        turn = await self._rooms.turn(call.principal, call.path["id"])
        if not await self._rooms.intake.abort(turn.id):
            raise Problem("too-late", "this turn has ended")
        return await self._shape(await self._rooms.turns.turn(turn.id))

    async def why(self, call: Call[Nothing, Nothing]) -> Why:
        chain = await self._rooms.why.chain(call.path["id"], call.principal.owner)
        return Why(
            turn_id=chain[0].turn.id,
            root_id=chain[0].turn.root_id,
            chain=[_link_shape(link) for link in chain],
        )

    async def _shape(self, turn: Turn) -> TurnShape:
        return turn_shape(turn, await self._rooms.ledger.of_turn(turn.id))


def _link_shape(link: Link) -> LinkShape:
    return LinkShape(
        turn=turn_shape(link.turn, link.stimuli),
        stimuli=[stimulus_shape(stimulus) for stimulus in link.stimuli],
        epochs=link.epochs,
        asks=[
            AskShape(
                step=ask.step,
                attempt=ask.attempt,
                epoch=ask.epoch,
                purpose=ask.purpose,
                state=ask.state,
                asked_at=time_of(ask.asked_at),
                settled_at=time_or_none(ask.settled_at),
                usage=ask.usage,
                error=ask.error,
            )
            for ask in link.asks
        ],
        tools=[
            ToolShape(
                step=tool.step,
                call_id=tool.call_id,
                name=tool.name,
                effect=tool.effect,
                state=tool.state,
                epoch=tool.epoch,
                intended_at=time_of(tool.intended_at),
                settled_at=time_or_none(tool.settled_at),
            )
            for tool in link.tools
        ],
    )
