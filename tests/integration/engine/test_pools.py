"""Agents share a pool of lanes, and none of them takes all of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.integration.engine.looking import turn_of
from wakeful.broker import lane_rows
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.scripted import Scripted, says
from wakeful.runtime import Runtime
from wakeful.settings.settings import LaneSettings, Settings
from wakeful.store.database import Row
from wakeful.testing.kit import operator_draft
from wakeful.turn.agent import Agent
from wakeful.vocabulary.stimulus import Draft, Priority, Trust

PLACES = 8


class Hanging:
    """A model that does not answer until it is told to."""

    name = "hanging"

    def __init__(self) -> None:
        self.asked = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        self.asked.release()
        await self.go_on.wait()
        yield says("at last")


def runtime_with(model: Hanging) -> Runtime:
    agents = [Agent("slow", model=model), Agent("quick", model=Scripted(lambda _: "at once"))]
    return Runtime(agents=agents, settings=Settings(lanes=LaneSettings(main=PLACES)))


async def test_an_agent_whose_model_hangs_keeps_no_other_agent_waiting():
    model = Hanging()
    async with runtime_with(model) as runtime:
        for number in range(2 * PLACES):
            await runtime.send("hello", session=f"agent:slow:dm:{number}")
        for _ in range(PLACES - 1):
            await model.asked.acquire()
        turns = [
            await turn_of(runtime, await runtime.send("hello", session=f"agent:quick:dm:{number}"))
            for number in range(3)
        ]
        rows = await runtime.store.read("SELECT COUNT(*) FROM lanes WHERE owner IS NOT NULL")
        model.go_on.set()

    assert [turn.reply for turn in turns] == ["at once"] * 3
    assert rows[0][0] == PLACES - 1


class HangingForStrangers(Hanging):
    """Answers the operator at once."""

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        if "it is me" in str(request.messages):
            yield says("at once")
            return
        async for part in super().stream(request):
            yield part


@pytest.mark.parametrize("places", [2, PLACES])
async def test_slow_strangers_never_hold_the_place_of_the_operator(places: int):
    model = HangingForStrangers()
    settings = Settings(lanes=LaneSettings(main=places))
    async with Runtime(agents=[Agent(model=model)], settings=settings) as runtime:
        receipts = [
            await runtime.accept(
                Draft(
                    session_key=f"agent:main:api:{number}",
                    trust=Trust.EXTERNAL,
                    owner="tk_a",
                    source="a",
                    text="hello",
                    priority=Priority.NOW,
                )
            )
            for number in range(2 * places)
        ]
        for _ in range(places - 1):
            await model.asked.acquire()
        turn = await turn_of(runtime, await runtime.send("it is me"))
        model.go_on.set()
        last = await turn_of(runtime, receipts[-1])

    assert (turn.reply, last.reply) == ("at once", "at last")


async def test_what_was_held_back_for_others_runs_when_there_is_room():
    model = Hanging()
    async with runtime_with(model) as runtime:
        receipts = [
            await runtime.send("hello", session=f"agent:slow:dm:{number}")
            for number in range(3 * PLACES)
        ]
        for _ in range(PLACES - 1):
            await model.asked.acquire()
        model.go_on.set()
        turns = [await turn_of(runtime, receipt) for receipt in receipts]

    assert [turn.reply for turn in turns] == ["at last"] * len(receipts)


async def test_places_that_become_free_during_a_look_are_filled(monkeypatch: pytest.MonkeyPatch):
    model = Hanging()
    async with runtime_with(model) as runtime:
        receipts = [
            await runtime.send("hello", session=f"agent:slow:dm:{number}")
            for number in range(3 * PLACES)
        ]
        for _ in range(PLACES - 1):
            await model.asked.acquire()
        read = runtime.store.read
        looks = 0

        async def read_late(sql: str, **parameters: Any) -> Sequence[Row]:
            """Answer the first look only when all that ran has ended."""
            nonlocal looks
            rows = await read(sql, **parameters)
            looks += sql == lane_rows.READY_LANES
            while looks == 1 and sql == lane_rows.READY_LANES and await running(read):
                pass
            return rows

        monkeypatch.setattr(runtime.store, "read", read_late)
        model.go_on.set()
        turns = [await turn_of(runtime, receipt) for receipt in receipts]

    assert looks > 1
    assert [turn.reply for turn in turns] == ["at last"] * len(receipts)


async def test_what_may_run_later_keeps_no_person_waiting():
    model = Hanging()
    settings = Settings(lanes=LaneSettings(main=PLACES))
    async with Runtime(agents=[Agent("slow", model=model)], settings=settings) as runtime:
        for number in range(2 * PLACES):
            await runtime.accept(
                operator_draft(f"agent:slow:dm:{number}", "hello", priority=Priority.LATER)
            )
        for _ in range(PLACES - 1):
            await model.asked.acquire()
        await runtime.send("hello", session="agent:slow:dm:person")
        await model.asked.acquire()
        rows = await runtime.store.read("SELECT session_key FROM turns ORDER BY id")
        model.go_on.set()

    assert rows[-1][0] == "agent:slow:dm:person"
    assert len(rows) == PLACES


async def running(read: Callable[..., Awaitable[Sequence[Row]]]) -> bool:
    ((count,),) = await read("SELECT COUNT(*) FROM lanes WHERE owner IS NOT NULL")
    return count > 0
