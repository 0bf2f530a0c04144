"""An agent that nobody asked speaks only so often; the rest leaves as one digest."""

import asyncio

import pytest

from tests.integration.gate.unasked import (
    ANN,
    HOUR_S,
    MAIN,
    MORNING,
    Hearer,
    deliveries,
    echo,
    settled,
    speaking,
    unasked,
)
from wakeful.models.scripted import Scripted
from wakeful.testing.kit import ManualClock, call, operator_draft, says, wait_for
from wakeful.tools.tool import tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import ThrottleRules
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.route import Route


async def test_what_is_too_much_waits_and_leaves_as_one_digest():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock) as runtime:
        for number in range(5):
            await unasked(runtime, f"news {number}")
            clock.advance(600)
        before = await deliveries(runtime)
        clock.advance(HOUR_S - 5 * 600)
        await settled(runtime, 6)
        rows = await runtime.store.read("SELECT id, sent_with, parts FROM deliveries ORDER BY id")
        after = await deliveries(runtime)

    digest = rows[-1][0]
    assert [state for _, state in before] == ["acknowledged"] * 2 + ["held"] * 3
    assert hearer.texts == [
        "news 0",
        "news 1",
        "3 messages that waited, so as not to disturb you:\n\n"
        "[10:20] news 2\n\n[10:30] news 3\n\n[10:40] news 4",
    ]
    assert {state for _, state in after} == {"acknowledged"}
    assert [tuple(row[1:]) for row in rows] == [(None, 0)] * 2 + [(digest, 0)] * 3 + [(None, 3)]


async def test_the_digest_is_itself_a_message_that_nobody_asked_for():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        await unasked(runtime, "two")
        clock.advance(HOUR_S)
        await settled(runtime, 3)
        clock.advance(60)
        await unasked(runtime, "three")
        clock.advance(HOUR_S - 120)
        held = await deliveries(runtime)
        clock.advance(120)
        await settled(runtime, 5)

    assert held[-1] == ("three", "held")
    assert hearer.texts == ["one", "two", "three"]


async def test_one_message_that_waited_leaves_as_it_is():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        await unasked(runtime, "two")
        clock.advance(HOUR_S)
        await settled(runtime, 3)

    assert hearer.texts == ["one", "two"]
    assert hearer.heard[1].turn_id is None


async def test_an_answer_to_a_person_never_waits():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        for text in ("one", "two"):
            await unasked(runtime, text)
        for text in ("a question", "another"):
            await runtime.wait(await runtime.send(text, route=ANN))
        await settled(runtime, 3)
        found = await deliveries(runtime)

    assert hearer.texts == ["one", "a question", "another"]
    assert dict(found)["two"] == "held"


@pytest.mark.parametrize("kind", [Kind.USER, Kind.HUB, Kind.A2A])
async def test_what_comes_of_a_question_is_an_answer_however_far_down_the_chain(kind: Kind):
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        asked = await runtime.accept(operator_draft(MAIN, "NO_REPLY", kind=kind, route=ANN))
        first = await runtime.wait(asked)
        assert first is not None
        report = operator_draft(
            MAIN,
            "the report",
            kind=Kind.SUBAGENT_ANNOUNCE,
            route=ANN,
            cause_id=first.id,
            root_id=first.root_id,
            depth=1,
        )
        await runtime.wait(await runtime.accept(report))
        await settled(runtime, 2)

    assert hearer.texts == ["one", "the report"]


async def test_a_person_who_joins_is_answered_at_once():
    clock, hearer = ManualClock(MORNING), Hearer()
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Look around."""
        begun.set()
        await go_on.wait()
        return "nothing"

    model = Scripted(["one", says("", call("look")), "for you"])
    runtime = speaking(hearer.take, clock, per_hour=1, model=model, tools=[look])
    async with runtime:
        await unasked(runtime, "one")
        work = await runtime.accept(operator_draft(MAIN, "work", kind=Kind.CALLBACK, route=ANN))
        await begun.wait()
        await runtime.send("hurry", route=ANN, mode="steer")
        go_on.set()
        await runtime.wait(work)
        await settled(runtime, 2)

    assert hearer.texts == ["one", "for you"]


async def test_the_reply_of_a_bound_job_never_waits_and_counts_for_nothing():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        for text in ("job 1", "job 2", "job 3"):
            await unasked(runtime, text, kind=Kind.AUTOMATION)
        await unasked(runtime, "by itself")
        await settled(runtime, 4)

    assert hearer.texts == ["job 1", "job 2", "job 3", "by itself"]


async def test_the_answer_to_what_a_person_asked_for_by_hand_never_waits():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        by_hand = operator_draft(
            MAIN, "all is well", kind=Kind.HEARTBEAT, route=ANN, ignores_quiet_hours=True
        )
        await runtime.wait(await runtime.accept(by_hand))
        await unasked(runtime, "due anyway", kind=Kind.HEARTBEAT)
        await settled(runtime, 2)
        found = await deliveries(runtime)

    assert hearer.texts == ["one", "all is well"]
    assert dict(found)["due anyway"] == "held"


async def test_each_route_and_each_agent_is_counted_for_itself():
    clock, hearer = ManualClock(MORNING), Hearer()
    bob = Route(door="out", address="bob")
    async with speaking(hearer.take, clock, per_hour=1, agents=("main", "other")) as runtime:
        await unasked(runtime, "to Ann")
        await unasked(runtime, "to Bob", route=bob)
        await unasked(runtime, "of another", session="agent:other:main")
        await settled(runtime, 3)

    assert hearer.texts == ["to Ann", "to Bob", "of another"]


async def test_without_a_limit_nothing_waits():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=None) as runtime:
        for number in range(20):
            await unasked(runtime, f"{number}")
        await settled(runtime, 20)

    assert hearer.texts == [f"{number}" for number in range(20)]


async def test_once_the_limit_is_lifted_what_waits_leaves_with_the_next_message():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        await unasked(runtime, "two")
        free = Agent(model=echo(), throttle=ThrottleRules(per_hour=None))
        await runtime.reconfigure(agents=[free])
        await unasked(runtime, "three")
        await settled(runtime, 4)

    assert hearer.texts[0] == "one"
    assert "[10:00] two\n\n[10:00] three" in hearer.texts[1]


async def test_the_model_is_told_that_its_message_waits():
    clock, hearer = ManualClock(MORNING), Hearer()
    model = Scripted(
        [
            says("", call("send_message", text="one"), call("send_message", call_id="2", text="b")),
            "NO_REPLY",
        ]
    )
    async with speaking(hearer.take, clock, per_hour=1, model=model) as runtime:
        await unasked(runtime, "look")
        held = await wait_for(runtime, "delivery.held")
        agent = await runtime.services.views.agents.get("main")

    told = [one.text for one in model.requests[-1].messages if isinstance(one, ToolMessage)]
    assert "waits" not in told[0]
    assert "it leaves in 1h, with whatever else waits by then" in told[1]
    assert held.data["held_until"] == MORNING + HOUR_S * 1000
    assert (agent.held.messages, agent.held.leaves_at) == (1, MORNING + HOUR_S * 1000)


async def test_what_becomes_of_a_digest_becomes_of_its_parts():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        turns = [await unasked(runtime, text) for text in ("two", "three")]
        hearer.refuses = Permanent("no such address")
        clock.advance(HOUR_S)
        told = [
            await wait_for(runtime, "delivery.failed", lambda e, id=turn.id: e.turn_id == id)
            for turn in turns
        ]
        rows = await runtime.store.read(
            "SELECT state, error FROM deliveries WHERE sent_with IS NOT NULL"
        )

    assert [event.data["error"] for event in told] == ["no such address"] * 2
    assert len({event.data["sent_with"] for event in told}) == 1
    assert [tuple(row) for row in rows] == [("failed", "no such address")] * 2


async def test_a_digest_of_several_sessions_is_the_main_sessions():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await runtime.wait(await runtime.send("NO_REPLY", session="agent:main:dm:bob"))
        await unasked(runtime, "one")
        for session in ("agent:main:dm:bob", MAIN):
            await unasked(runtime, "more", session=session)
        clock.advance(HOUR_S)
        await settled(runtime, 4)

    assert hearer.heard[-1].session_key == MAIN


async def test_a_clock_that_is_moved_back_delays_a_digest_by_an_hour_at_most():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        await unasked(runtime, "two")
        clock.jump_to(MORNING - 10 * HOUR_S * 1000)
        await unasked(runtime, "three")
        clock.advance(HOUR_S)
        await settled(runtime, 4)

    assert hearer.texts[0] == "one"
    assert "two" in hearer.texts[1]
    assert "three" in hearer.texts[1]


async def test_a_message_that_cannot_be_read_holds_up_no_digest():
    clock, hearer = ManualClock(MORNING), Hearer()
    async with speaking(hearer.take, clock, per_hour=1) as runtime:
        await unasked(runtime, "one")
        await unasked(runtime, "two")
        await unasked(runtime, "three")
        await runtime.store.transact(
            lambda tx: tx.run("UPDATE deliveries SET route = '{' WHERE text = 'two'")
        )
        clock.advance(HOUR_S)
        await settled(runtime, 3)
        found = await deliveries(runtime)

    assert hearer.texts == ["one", "three"]
    assert dict(found)["two"] == "failed"


def test_a_limit_with_which_nothing_would_ever_leave_is_refused():
    with pytest.raises(InvalidInput, match="at least 1, or null"):
        Agent(model=echo(), throttle=ThrottleRules(per_hour=0))


async def test_several_sessions_at_once_share_one_count():
    clock, hearer = ManualClock(MORNING), Hearer()
    sessions = [f"agent:main:dm:{number}" for number in range(8)]
    async with speaking(hearer.take, clock, per_hour=3) as runtime:
        for session in sessions:
            await runtime.wait(await runtime.send("NO_REPLY", session=session))
        await asyncio.gather(*(unasked(runtime, "hi", session=session) for session in sessions))
        found = await deliveries(runtime)

    assert sum(state == "held" for _, state in found) == 5
