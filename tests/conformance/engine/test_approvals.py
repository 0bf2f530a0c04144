"""Approvals on every database: numbers without a gap, one answer, one run, days later, too."""

import asyncio
from collections.abc import Sequence

from tests.conformance.engine.conftest import SettingsFor
from wakeful.approvals import approvals
from wakeful.approvals.acts import AlreadyDecided
from wakeful.approvals.approvals import Approval
from wakeful.models.model import Request
from wakeful.models.scripted import Line
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted, call, says, wait_for
from wakeful.tools.tool import Tool, tool
from wakeful.turn.agent import Agent

acts: list[str] = []


@tool
def act(what: str) -> str:
    """Act."""
    acts.append(what)
    return f"did {what}"


def speaks(request: Request) -> Line:
    """Ask to act once, and rest when that was decided."""
    text = request.messages[-1].text
    return "well" if "pproval #" in text else says("", call("act", what=text))


def runtime_on(
    settings: Settings,
    clock: ManualClock | None = None,
    tools: Sequence[Tool] = (act,),
    rule: str = "ask",
) -> Runtime:
    agent = Agent(
        model=Scripted(speaks), tools=tools, heartbeat=NO_HEARTBEAT, approvals={"act": rule}
    )
    return Runtime(agents=[agent], settings=settings, clock=clock)


async def finished(runtime: Runtime, session: str, since: str) -> str | None:
    event = await wait_for(runtime, "turn.finished", since=since, session=session)
    return event.data["reply"]


async def test_many_ask_at_once_and_have_numbers_without_a_gap(settings_for: SettingsFor):
    acts.clear()
    async with runtime_on(settings_for()) as runtime:
        receipts = [await runtime.send(str(one), session=f"api:{one}") for one in range(8)]
        for receipt in receipts:
            await runtime.wait(receipt)
        asked = await runtime.approvals()

    assert sorted(one.number for one in asked) == list(range(1, 9))
    assert acts == []


async def test_of_many_who_decide_at_once_one_does_and_the_call_runs_once(
    settings_for: SettingsFor,
):
    acts.clear()

    async def decided(runtime: Runtime, number: int) -> Approval | None:
        decide = runtime.approve if number % 2 else runtime.deny
        try:
            return await decide(1)
        except AlreadyDecided:
            return None

    async with runtime_on(settings_for()) as runtime:
        await runtime.wait(await runtime.send("x"))
        since = await runtime.cursor()
        answers = await asyncio.gather(*(decided(runtime, number) for number in range(8)))
        await finished(runtime, "main", since)
        (row,) = await runtime.approvals(None)

    (winner,) = [one for one in answers if one is not None]
    assert row.state == winner.state
    assert acts == (["x"] if row.state == "granted" else [])


async def test_what_was_asked_is_granted_days_and_a_restart_later(lasting: SettingsFor):
    acts.clear()
    clock = ManualClock()
    async with runtime_on(lasting(), clock) as runtime:
        await runtime.wait(await runtime.send("x"))
    clock.advance(3 * 86_400)
    async with runtime_on(lasting(), clock) as runtime:
        since = await runtime.cursor()
        said = await runtime.send("/approve 1", session="elsewhere")
        reply = await finished(runtime, "main", since)

    assert said.reply == "Approved #1: act."
    assert reply == "well"
    assert acts == ["x"]


async def test_a_tool_that_is_gone_when_it_may_run_says_so(lasting: SettingsFor):
    acts.clear()
    async with runtime_on(lasting()) as runtime:
        await runtime.wait(await runtime.send("x"))
    async with runtime_on(lasting(), tools=()) as runtime:
        since = await runtime.cursor()
        await runtime.approve(1)
        await finished(runtime, "main", since)
        lines = [getattr(entry.content(), "text", "") for entry in await runtime.entries()]
        (row,) = await runtime.approvals("granted")

    assert 'Approved #1: act({"what":"x"}) → tool no longer available' in lines
    assert row.used_at is not None
    assert acts == []


async def test_what_was_approved_does_not_run_once_the_rule_is_deny(lasting: SettingsFor):
    acts.clear()
    async with runtime_on(lasting()) as runtime:
        await runtime.wait(await runtime.send("x"))
        await runtime.halt()
        await runtime.approve(1)
    async with runtime_on(lasting(), rule="deny") as runtime:
        since = await runtime.cursor()
        await runtime.resume()
        await finished(runtime, "main", since)
        lines = [getattr(entry.content(), "text", "") for entry in await runtime.entries()]

    assert any(line.startswith("Approved #1: act(") and "not allowed" in line for line in lines)
    assert acts == []


async def test_what_expires_while_nobody_runs_expires_at_the_next_start(lasting: SettingsFor):
    acts.clear()
    clock = ManualClock()
    async with runtime_on(lasting(), clock) as runtime:
        await runtime.wait(await runtime.send("x"))
    clock.advance(8 * 86_400)
    async with runtime_on(lasting(), clock) as runtime:
        await wait_for(runtime, "approval.expired")
        (row,) = await runtime.approvals("expired")
        notices = await runtime.store.read("SELECT text FROM notices WHERE kind = 'approval'")

    assert row.decided_by == "time"
    assert len(notices) == 1
    assert acts == []


async def test_old_answers_are_forgotten_and_open_questions_are_not(settings_for: SettingsFor):
    clock = ManualClock()
    async with runtime_on(settings_for(), clock) as runtime:
        for text in ("x", "y"):
            await runtime.wait(await runtime.send(text, session=f"api:{text}"))
        since = await runtime.cursor()
        await runtime.deny(1)
        await finished(runtime, "api:x", since)
        await runtime.store.transact(lambda tx: approvals.prune(tx, clock.now() + 1, 100))
        left = await runtime.approvals(None)

    assert [one.number for one in left] == [2]
