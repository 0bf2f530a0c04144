"""A question of the agent is answered by the next message, or by the operator from anywhere."""

import pytest

from tests.integration.approvals.asking import act, after, asking, ended, kinds, notes, rows
from tests.integration.engine.looking import shown
from tests.integration.engine.small import LONG, RULES, Small
from wakeful.models.scripted import Pause
from wakeful.runtime import Runtime
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted, call, says, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.approving import Permission, ToolPermission
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft, Trust

QUESTION = says("", call("ask_human", question="Which colour?"))


async def test_the_question_is_the_reply_and_the_next_message_the_answer():
    model = Scripted([QUESTION, "blue it is"])
    async with asking(model) as runtime:
        asked = await ended(runtime, await runtime.send("paint it"))
        turn = await ended(runtime, await runtime.send("blue"))
        (row,) = await runtime.approvals("granted")

        assert asked.reply == "Which colour?"
        assert turn.reply == "blue it is"
        assert (row.kind, row.question, row.note) == ("question", "Which colour?", "blue")
        assert await notes(runtime) == ['[What follows answers your question #1: "Which colour?"]']
        assert await kinds(runtime) == ["approval.asked", "approval.granted"]
        assert await runtime.store.read("SELECT id FROM timers WHERE kind = 'approval'") == []
    assert shown(model.requests[1])[-1].endswith("blue")


async def test_the_question_goes_to_the_route_of_the_session():
    async with asking([QUESTION]) as runtime:
        route = Route(door="library")
        turn = await ended(runtime, await runtime.send("paint it", route=route))

        assert turn.route == route
        assert turn.reply == "Which colour?"


async def test_the_operator_answers_from_anywhere_with_a_text():
    model = Scripted([QUESTION, "blue it is"])
    async with asking(model) as runtime:
        await ended(runtime, await runtime.send("paint it", session="api:x"))
        empty = await runtime.send("/approve 1", session="main")
        said = await runtime.send("/approve 1 blue", session="main")
        turn = await after(runtime, 1)

        assert "must be the answer" in (empty.reply or "")
        assert said.reply == "Answered question #1."
        assert turn.session_key == "agent:main:api:x"
        assert turn.reply == "blue it is"
        with pytest.raises(InvalidInput, match="decided before"):
            await runtime.approve(1, "red")
    assert 'question #1, "Which colour?":]\nblue' in shown(model.requests[1])[-1]


async def test_several_questions_are_answered_the_oldest_first():
    two = says("", call("ask_human", "a", question="One?"), call("ask_human", "b", question="Two?"))
    async with asking([two, "first", "second"]) as runtime:
        asked = await ended(runtime, await runtime.send("go"))
        await ended(runtime, await runtime.send("1"))
        assert await rows(runtime) == [(1, "granted"), (2, "open")]
        await ended(runtime, await runtime.send("2"))

        assert asked.reply == "One?\n\nTwo?"
        answers = {one.number: one.note for one in await runtime.approvals("granted")}
    assert answers == {1: "1", 2: "2"}


async def test_what_was_said_before_the_question_does_not_answer_it():
    pause = Pause("wait", QUESTION)
    async with asking([pause, "well", "blue it is"]) as runtime:
        first = await runtime.send("paint it")
        await pause.reached.wait()
        earlier = await runtime.send("hurry", mode="queue")
        pause.go_on.set()
        await ended(runtime, first)
        await ended(runtime, earlier)
        assert await rows(runtime) == [(1, "open")]
        await ended(runtime, await runtime.send("blue"))

        assert await rows(runtime) == [(1, "granted")]


async def test_a_question_that_nobody_answers_expires():
    clock = ManualClock()
    rule = ToolPermission(rule=Permission.ALLOW, expires="1h")
    model = Scripted([QUESTION, "I decide myself"])
    async with asking(model, {"ask_human": rule}, clock=clock) as runtime:
        await ended(runtime, await runtime.send("paint it"))
        clock.advance(3_600)
        await wait_for(runtime, "approval.expired")
        turn = await after(runtime, 1)

        assert turn.reply == "I decide myself"
        assert await rows(runtime) == [(1, "expired")]
    assert "Nobody answered your question #1" in shown(model.requests[1])[-1]


async def test_a_stranger_cannot_make_the_agent_ask_people():
    model = Scripted([QUESTION, "well"])
    async with asking(model) as runtime:
        draft = Draft(
            session_key="agent:main:api:a", trust=Trust.EXTERNAL, owner="a", text="go", source="a"
        )
        await ended(runtime, await runtime.accept(draft))

        assert await rows(runtime) == []
    assert "ask_human" not in {spec.name for spec in model.requests[0].tools}


async def test_what_is_open_is_told_again_after_a_compaction():
    asks = says("", call("act", what="x"))
    model = Small([asks, "one", "two", "three"])
    agent = Agent(
        model=model, tools=[act], compaction=RULES, heartbeat=NO_HEARTBEAT, approvals={"act": "ask"}
    )
    async with Runtime(agents=[agent]) as runtime:
        await ended(runtime, await runtime.send("go"))
        for _ in range(3):
            await ended(runtime, await runtime.send(LONG))
        told = [note for note in await notes(runtime) if "still wait" in note]

    line = '- #1: act({"what":"x"})'
    assert len(model.summed_up) >= 1
    assert told[0].endswith(line)
    assert any(line in text for text in shown(model.requests[-1]))
