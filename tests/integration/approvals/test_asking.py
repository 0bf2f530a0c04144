"""A call that must be approved waits for somebody's word, and for nothing else."""

import asyncio
from base64 import b64encode

import pytest

from tests.integration.approvals.asking import (
    act,
    acts,
    after,
    asking,
    ended,
    kinds,
    look,
    notes,
    rows,
)
from tests.integration.engine.looking import shown
from wakeful.approvals.acts import AlreadyDecided
from wakeful.assembly.hooks import Hooks
from wakeful.models.scripted import Pause
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted, call, says, wait_for
from wakeful.tools.tool import Effect, LedgerContext, ToolResult, tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.approving import ApprovalState, ExpiryDefault, Permission, ToolPermission
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.stimulus import Attachment, Draft, Trust

ACT = says("I act.", call("act", what="x"))


async def test_a_call_that_must_be_approved_does_not_run_and_ends_the_turn():
    model = Scripted([ACT])
    async with asking(model) as runtime:
        turn = await ended(runtime, await runtime.send("go"))
        (asked,) = await runtime.approvals()
        calls = await runtime.store.read("SELECT state FROM tool_calls")

        assert turn.state is TurnState.DONE
        assert turn.reply == "I act.\n\nWaiting for approval #1: act (/approve 1 or /deny 1)."
        assert (asked.number, asked.tool, asked.arguments) == (1, "act", '{"what":"x"}')
        assert asked.expires_at - asked.created_at == 7 * 86_400_000
        assert [row[0] for row in calls] == ["asked"]
        assert (await runtime.lane()).state == "idle"
        assert await kinds(runtime) == ["approval.asked"]
    assert acts == []
    assert len(model.requests) == 1


async def test_what_was_approved_runs_once_before_the_model_is_asked():
    model = Scripted([ACT, "it is done"])
    async with asking(model) as runtime:
        await ended(runtime, await runtime.send("go"))
        decided = await runtime.approve(1, "be careful")
        turn = await after(runtime, 1)

        assert decided.state is ApprovalState.GRANTED
        assert turn.reply == "it is done"
        assert acts == ["x"]
        assert await notes(runtime) == ['Approved #1: act({"what":"x"}) → did x']
        assert await kinds(runtime) == ["approval.asked", "approval.granted"]
        used = (await runtime.approvals("granted"))[0]
        assert used.used_by == turn.id
    said = shown(model.requests[1])
    assert said[-1].endswith('Approved #1: act({"what":"x"}) → did x')
    assert "be careful" in said[-1]
    assert sum(line.startswith("assistant") for line in said) == 1


async def test_what_was_decided_before_cannot_be_decided_again():
    async with asking([ACT, "done"]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve("#1")
        await after(runtime, 1)
        with pytest.raises(AlreadyDecided):
            await runtime.approve(1)
        with pytest.raises(AlreadyDecided):
            await runtime.deny(1)
        with pytest.raises(NotFound):
            await runtime.approve(2)

        audited = await runtime.store.read("SELECT who, action FROM audit")
    assert [tuple(row) for row in audited] == [("operator", "approvals.approve")]
    assert acts == ["x"]


async def test_the_model_is_told_of_a_denial_and_its_note():
    model = Scripted([ACT, "then not"])
    async with asking(model) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.deny(1, "never on Mondays")
        turn = await after(runtime, 1)

        assert turn.reply == "then not"
        assert await rows(runtime) == [(1, "denied")]
    last = shown(model.requests[1])[-1]
    assert "Approval #1 was denied" in last
    assert "never on Mondays" in last
    assert acts == []


async def test_the_same_call_is_not_asked_for_twice_and_another_one_is():
    other = says("", call("act", what="y"))
    async with asking([ACT, ACT, other]) as runtime:
        for text in ("one", "two", "three"):
            await ended(runtime, await runtime.send(text))

        assert await rows(runtime) == [(1, "open"), (2, "open")]


async def test_several_calls_of_one_reply_ask_each_and_the_others_run():
    many = says(
        "", call("look", "a"), call("act", "b", what="x"), call("look", "c"), call("act", "d")
    )
    async with asking([many]) as runtime:
        turn = await ended(runtime, await runtime.send("go"))

        assert await rows(runtime) == [(1, "open"), (2, "open")]
        assert turn.reply == (
            "Waiting for approval #1: act (/approve 1 or /deny 1).\n\n"
            "Waiting for approval #2: act (/approve 2 or /deny 2)."
        )
    assert acts == ["look ", "look "]


async def test_reads_that_must_be_approved_do_not_run_beside_others():
    many = says("", call("look", "a"), call("peek", "b"), call("look", "c"))

    @tool(effect="read")
    def peek() -> str:
        """Peek."""
        acts.append("peeked")
        return "peeked"

    async with asking([many], {"peek": "ask"}, tools=[look, peek]) as runtime:
        await ended(runtime, await runtime.send("go"))

        assert await rows(runtime) == [(1, "open")]
    assert acts == ["look ", "look "]


async def test_two_that_are_approved_at_once_run_one_after_the_other():
    both = says("", call("act", "a", what="x"), call("act", "b", what="y"))
    async with asking([both, "first", "second"]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        await runtime.approve(2)
        turns = [await after(runtime, number) for number in (1, 2)]

        assert [turn.reply for turn in turns] == ["first", "second"]
    assert acts == ["x", "y"]


async def test_a_tool_that_is_denied_says_so_and_the_turn_goes_on():
    model = Scripted([ACT, "I may not"])
    async with asking(model, {"act": "deny"}) as runtime:
        turn = await ended(runtime, await runtime.send("go"))

        assert turn.reply == "I may not"
        assert await rows(runtime) == []
    assert "not allowed" in shown(model.requests[1])[-1]
    assert acts == []


async def test_nobody_is_asked_about_a_call_that_could_not_run():
    wrong = says("", call("act", where="x"))
    async with asking([wrong, "well"]) as runtime:
        turn = await ended(runtime, await runtime.send("go"))

        assert turn.reply == "well"
        assert await rows(runtime) == []


async def test_a_ledger_tool_that_was_approved_runs_in_the_commit_of_its_result():
    @tool(effect=Effect.LEDGER)
    def note(context: LedgerContext, text: str) -> ToolResult:
        """Note."""
        acts.append(text)
        return ToolResult(text="noted")

    model = Scripted([says("", call("note", text="x")), "done"])
    async with asking(model, {"note": "ask"}, tools=[note]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        turn = await after(runtime, 1)

        assert turn.reply == "done"
        assert await notes(runtime) == ['Approved #1: note({"text":"x"}) → noted']
    assert acts == ["x"]


async def test_a_ledger_tool_that_fails_when_approved_has_a_result_all_the_same():
    @tool(effect=Effect.LEDGER)
    def note(context: LedgerContext, text: str) -> ToolResult:
        """Note."""
        raise InvalidInput("text", "must be another")

    async with asking(
        [says("", call("note", text="x")), "well"], {"note": "ask"}, tools=[note]
    ) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        turn = await after(runtime, 1)

        assert turn.reply == "well"
        assert await notes(runtime) == ['Approved #1: note({"text":"x"}) → text: must be another']


async def test_a_message_that_waits_does_not_keep_an_approved_call_from_running():
    pause = Pause("wait", ACT)
    model = Scripted([ACT, pause, "one", "two", "three"])
    async with asking(model) as runtime:
        await ended(runtime, await runtime.send("go"))
        busy = await runtime.send("busy")
        await pause.reached.wait()
        await runtime.approve(1)
        said = await runtime.send("and?", mode="queue")
        pause.go_on.set()
        await ended(runtime, busy)
        await after(runtime, 1)
        await ended(runtime, said)

        assert await rows(runtime) == [(1, "granted")]
    assert acts == ["x"]


async def test_what_nobody_decides_expires_with_one_notice_and_the_model_is_told():
    clock = ManualClock()
    model = Scripted([ACT, "too late"])
    async with asking(model, clock=clock) as runtime:
        await ended(runtime, await runtime.send("go"))
        clock.advance(7 * 86_400)
        await wait_for(runtime, "approval.expired")
        turn = await after(runtime, 1)

        assert turn.reply == "too late"
        assert await rows(runtime) == [(1, "expired")]
        told = await runtime.store.read("SELECT text FROM notices WHERE kind = 'approval'")
        with pytest.raises(AlreadyDecided):
            await runtime.approve(1)
    assert len(told) == 1
    assert "Approval #1 has expired" in shown(model.requests[1])[-1]
    assert acts == []


async def test_what_nobody_decides_runs_where_the_rule_says_so():
    clock = ManualClock()
    rule = ToolPermission(rule=Permission.ASK, expires="1h", default=ExpiryDefault.ALLOW)
    async with asking([ACT, "done"], {"act": rule}, clock=clock) as runtime:
        await ended(runtime, await runtime.send("go"))
        clock.advance(3_600)
        await wait_for(runtime, "approval.granted")
        turn = await after(runtime, 1)

        assert turn.reply == "done"
        assert (await runtime.approvals("granted"))[0].decided_by == "time"
    assert acts == ["x"]


@pytest.mark.parametrize("default", ExpiryDefault)
async def test_an_agent_that_asks_again_whenever_nobody_answers_comes_to_an_end(
    default: ExpiryDefault,
):
    """F26, I14: each answer by the clock is one cause more, until the chain is cut, told once."""
    clock, longest = ManualClock(), 16
    rule = ToolPermission(rule=Permission.ASK, expires="1m", default=default)
    model = Scripted(lambda _: ACT)
    async with asking(model, {"act": rule}, clock=clock) as runtime:
        await ended(runtime, await runtime.send("go"))
        for number in range(1, longest + 1):
            clock.advance(60)
            await wait_for(runtime, "approval.*", lambda e, n=number: e.data["number"] > n)
            await after(runtime, number)
        clock.advance(60)
        await wait_for(runtime, "loop.cut")
        clock.advance(3_600)
        told = await runtime.store.read("SELECT 1 FROM notices WHERE kind = 'loop'")
        left = await runtime.store.read("SELECT 1 FROM timers WHERE kind = 'approval'")
        again = await ended(runtime, await runtime.send("and now?"))

        assert len(await rows(runtime)) == longest + 2  # a person begins a chain of their own
    assert len(acts) == (longest if default is ExpiryDefault.ALLOW else 0)
    assert (len(told), left) == (1, [])
    assert again.depth == 0


async def test_what_was_approved_in_time_does_not_expire():
    clock = ManualClock()
    async with asking([ACT, "done"], clock=clock) as runtime:
        await ended(runtime, await runtime.send("go"))
        clock.advance(3 * 86_400)
        await runtime.approve(1)
        await after(runtime, 1)
        timers = await runtime.store.read("SELECT id FROM timers WHERE kind = 'approval'")
        clock.advance(7 * 86_400)

        assert timers == []
        assert await rows(runtime) == [(1, "granted")]
    assert acts == ["x"]


@pytest.mark.parametrize("end", ["delete", "reset"])
async def test_what_is_open_ends_with_its_session_or_conversation(end: str):
    async with asking([ACT]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await (runtime.delete("main") if end == "delete" else runtime.reset("main"))

        assert await rows(runtime) == [(1, "cancelled")]
        assert await kinds(runtime) == ["approval.asked", "approval.cancelled"]
        with pytest.raises(AlreadyDecided):
            await runtime.approve(1)


async def test_what_was_granted_and_has_not_run_goes_with_its_session():
    pause = Pause("wait")
    async with asking([ACT, pause]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.send("busy")
        await pause.reached.wait()
        await runtime.approve(1)
        await runtime.delete("main")

        assert await rows(runtime) == [(1, "cancelled")]
    assert acts == []


async def test_a_stop_leaves_open_what_was_asked():
    async with asking([ACT, "done"]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.stop()
        await runtime.approve(1)
        await after(runtime, 1)
    assert acts == ["x"]


async def test_a_grant_whose_answer_was_cancelled_lets_nothing_run():
    pause = Pause("wait")
    async with asking([ACT, pause, ACT]) as runtime:
        await ended(runtime, await runtime.send("go"))
        busy = await runtime.send("busy")
        await pause.reached.wait()
        granted = await runtime.approve(1)
        assert granted.stimulus_id is not None
        await runtime.cancel(granted.stimulus_id)
        pause.go_on.set()
        await ended(runtime, busy)
        await ended(runtime, await runtime.send("again"))

        assert await rows(runtime) == [(1, "cancelled"), (2, "open")]
    assert acts == []


async def test_a_call_that_was_granted_and_waits_is_not_asked_for_again():
    pause = Pause("wait", ACT)
    async with asking([ACT, pause, "done"]) as runtime:
        await ended(runtime, await runtime.send("go"))
        busy = await runtime.send("busy")
        await pause.reached.wait()
        await runtime.approve(1)
        pause.go_on.set()
        await ended(runtime, busy)
        await after(runtime, 1)

        assert await rows(runtime) == [(1, "granted")]
    assert acts == ["x"]


async def test_the_answer_has_the_trust_route_and_cause_of_the_turn_that_asked():
    async with asking([ACT, "done"]) as runtime:
        asked = await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        turn = await after(runtime, 1)
        stimulus = await runtime.services.views.turns.stimulus(turn.opened_by)

        assert stimulus.cause_id == asked.id
        assert (turn.trust, turn.route, turn.root_id) == (asked.trust, asked.route, asked.root_id)
        assert turn.depth == asked.depth


async def test_a_turn_of_a_stranger_asks_for_what_it_was_granted_and_gains_nothing_by_it():
    again = says("", call("act", what="y"))
    model = Scripted([ACT, again, "well"])
    hooks = Hooks(grants_of=lambda _stimulus: ("act",))
    async with asking(model, hooks=hooks) as runtime:
        draft = Draft(
            session_key="agent:main:api:a", trust=Trust.EXTERNAL, owner="a", text="go", source="a"
        )
        await ended(runtime, await runtime.accept(draft))
        await runtime.approve(1)
        turn = await after(runtime, 1)

        assert turn.trust is Trust.EXTERNAL
        assert turn.granted == ("act",)
        assert turn.reply is None
        assert await rows(runtime) == [(1, "granted"), (2, "open")]
    assert acts == ["x"]
    assert "<<<external" in shown(model.requests[1])[-1]


async def test_a_turn_that_was_tainted_after_it_asked_runs_that_one_call_only():
    @tool(effect="read", is_for_external=True)
    def outside() -> ToolResult:
        """Look outside."""
        return ToolResult(text="obey", is_external=True)

    both = says("", call("act", what="x"), call("outside"))
    model = Scripted([both, says("", call("act", what="y")), "well"])
    async with asking(model, tools=[act, outside]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        turn = await after(runtime, 1)

        assert turn.trust is Trust.EXTERNAL
        assert turn.reply == "well"
        assert await rows(runtime) == [(1, "granted")]
    assert acts == ["x"]
    assert "there is no tool 'act'" in shown(model.requests[2])[-1]


async def test_what_an_approved_call_attaches_is_shown_and_can_be_taken():
    @tool
    def draw() -> ToolResult:
        """Draw."""
        data = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
        drawn = Attachment(name="a.png", media_type="image/png", data=data)
        return ToolResult(text="drawn", attachments=(drawn,))

    model = Scripted([says("", call("draw")), "there"])
    async with asking(model, {"draw": "ask"}, tools=[draw]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        await after(runtime, 1)
        held = await runtime.store.read("SELECT COUNT(*) FROM attachment_uses")

    assert "drawn\n[attachment " in shown(model.requests[1])[-1]
    assert held[0][0] == 1


async def test_an_approved_call_that_was_preempted_is_not_begun_again():
    reached, release = asyncio.Event(), asyncio.Event()

    @tool
    async def act_slowly() -> str:
        """Act."""
        acts.append("begun")
        reached.set()
        await release.wait()
        return "done"

    model = Scripted([says("", call("act_slowly")), "urgent", "the rest"])
    async with asking(model, {"act_slowly": "ask"}, tools=[act_slowly]) as runtime:
        await ended(runtime, await runtime.send("go"))
        await runtime.approve(1)
        await reached.wait()
        urgent = await runtime.send("now!", priority="now")
        assert (await ended(runtime, urgent)).reply == "urgent"
        last = await after(runtime, 1)

        assert last.reply == "the rest"
        assert await rows(runtime) == [(1, "granted")]
        assert await notes(runtime) != []
    assert acts == ["begun"]


async def test_a_heartbeat_asks_too_and_people_hear_of_it():
    agent = Agent(
        model=Scripted([ACT, "done"]),
        tools=[act],
        heartbeat=HeartbeatRules(prompt="Look around."),
        approvals={"act": "ask"},
    )
    acts.clear()
    async with Runtime(agents=[agent]) as runtime:
        turn = await ended(runtime, await runtime.beat())
        await runtime.approve(1)
        await after(runtime, 1)

        assert turn.reply == "I act.\n\nWaiting for approval #1: act (/approve 1 or /deny 1)."
    assert acts == ["x"]
