"""A row that this release cannot read is one row's trouble: everything else goes on."""

import asyncio

import pytest

from tests.conformance.engine.conftest import SettingsFor
from wakeful.models.model import Request
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted, in_memory, operator_draft, wait_for
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.errors import NotFound, Transient, UnreadableRow
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft

BAD = "agent:main:bad"
UNKNOWN_MODE = "UPDATE sessions SET queue = '{\"mode\":\"telepathy\"}' WHERE key = 'agent:main:bad'"
LATER_S = 60.0


def well(_: Request) -> str:
    return "well"


async def say(runtime: Runtime, session: str, text: str = "hello") -> str:
    turn = await runtime.wait(await runtime.send(text, session=session))
    assert turn is not None
    return str(turn.reply)


async def spoil(runtime: Runtime, sql: str) -> None:
    """Write what another release would have written."""
    assert await runtime.store.transact(lambda tx: tx.run(sql)) > 0


async def as_time_passes(runtime: Runtime, clock: ManualClock, kind: str) -> Event:
    """Return the next event of a kind, letting time pass until it comes."""
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_for(runtime, kind))
        while not waiting.done():
            clock.advance(1)
            await runtime.store.read("SELECT 1")
    return waiting.result()


def later(clock: ManualClock, text: str) -> Draft:
    due_at = clock.now() + round(LATER_S * 1000)
    return operator_draft(session_key=BAD, text=text, kind=Kind.A2A, not_before=due_at)


async def test_a_session_of_another_release_fails_visibly_and_all_others_are_answered(
    lasting: SettingsFor,
):
    clock = ManualClock()
    async with in_memory(Scripted(well), settings=lasting(), clock=clock) as runtime:
        await say(runtime, "bad")
        waiting = await runtime.accept(later(clock, "for the bad one"))
        await spoil(runtime, UNKNOWN_MODE)

    async with in_memory(Scripted(well), settings=lasting(), clock=clock) as runtime:
        clock.advance(LATER_S)
        answers = [await say(runtime, session) for session in ("main", "other")]
        failed = await as_time_passes(runtime, clock, "stimulus.failed")
        with pytest.raises(UnreadableRow, match=r"sessions\.queue of 'agent:main:bad'.*telepathy"):
            await runtime.send("still there?", session="bad")
        answers.append(await say(runtime, "main"))

    assert answers == ["well"] * 3
    assert (failed.stimulus_id, failed.data["reason"]) == (waiting.stimulus_id, "poisoned")


async def test_a_session_that_cannot_be_read_can_be_deleted(settings_for: SettingsFor):
    async with in_memory(Scripted(well), settings=settings_for()) as runtime:
        await say(runtime, "bad")
        await spoil(runtime, UNKNOWN_MODE)
        deleted = await runtime.delete("bad")
        left = await runtime.store.read("SELECT key FROM sessions WHERE key NOT LIKE '%:activity'")
        with pytest.raises(NotFound):
            await runtime.delete("bad")
        again = await say(runtime, "bad")

    assert deleted.deleted
    assert left == []
    assert again == "well"


async def test_of_what_waits_in_a_lane_only_what_cannot_be_read_fails(settings_for: SettingsFor):
    clock = ManualClock()
    async with in_memory(Scripted(well), settings=settings_for(), clock=clock) as runtime:
        good, bad, next = [
            await runtime.accept(later(clock, text)) for text in ("good", "bad", "next")
        ]
        await spoil(runtime, "UPDATE stimuli SET mode = 'telepathy' WHERE text = 'bad'")
        clock.advance(LATER_S)
        failed = await as_time_passes(runtime, clock, "stimulus.failed")
        turns = [await runtime.wait(receipt) for receipt in (good, next)]

    assert failed.stimulus_id == bad.stimulus_id
    assert [turn and turn.reply for turn in turns] == ["well", "well"]


async def test_an_open_turn_of_another_release_ends_as_failed(settings_for: SettingsFor):
    clock = ManualClock()
    model = Scripted([Transient("overloaded", retry_after_s=5), "well"])
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        await runtime.send("first", session="bad")
        left = await wait_for(runtime, "turn.left")
        await spoil(runtime, "UPDATE turns SET phase = 'dreaming', kind = 'elsewhere'")
        finished = await as_time_passes(runtime, clock, "turn.finished")
        second = await say(runtime, "bad")

    assert (finished.turn_id, finished.data["state"]) == (left.turn_id, TurnState.FAILED)
    assert second == "well"


async def test_a_lane_that_cannot_be_read_loses_what_is_in_the_way_and_nothing_else(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    async with in_memory(Scripted(well), settings=settings_for(), clock=clock) as runtime:
        waiting = await runtime.accept(later(clock, "waits"))
        await spoil(runtime, "UPDATE lanes SET overflow = '{\"lost\":1}'")
        clock.advance(LATER_S)
        await as_time_passes(runtime, clock, "turn.finished")
        turn = await runtime.wait(waiting)

    assert turn is not None
    assert turn.reply == "well"


async def test_a_delivery_of_another_release_fails_and_what_follows_it_is_sent(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    is_down = [True]
    received: list[str] = []

    async def out(delivery: Delivery) -> None:
        if is_down:
            raise Transient("down", retry_after_s=5)
        received.append(delivery.text)

    route = Route(door="out", address="ann")
    lines = Scripted(["one", "two"])
    async with in_memory(
        lines, settings=settings_for(), clock=clock, doors={"out": out}
    ) as runtime:
        for text in ("1", "2"):
            await runtime.wait(await runtime.send(text, route=route))
        await wait_for(runtime, "delivery.retry")
        await spoil(runtime, "UPDATE deliveries SET route = '{}' WHERE text = 'one'")
        is_down.clear()
        failed = await as_time_passes(runtime, clock, "delivery.failed")
        await as_time_passes(runtime, clock, "delivery.acknowledged")

    assert "deliveries.route" in str(failed.data["error"])
    assert received == ["two"]
