"""What may not run yet, what may not run any more, and what sleep kept out."""

from tests.integration.engine.looking import shown, states, turn_of
from tests.integration.engine.stages import Gate
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
from wakeful.testing.kit import (
    ManualClock,
    Pause,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.vocabulary.stimulus import Outcome, Priority, Trust

MAIN = "agent:main:main"
DAY_MS = 86_400_000


async def test_a_now_of_tomorrow_preempts_nothing_today():
    pause = Pause("undisturbed")
    async with in_memory([pause]) as runtime:
        first = await runtime.send("one")
        await pause.reached.wait()
        urgent = await runtime.accept(
            operator_draft(
                session_key=MAIN,
                text="tomorrow",
                priority=Priority.NOW,
                not_before=runtime.clock.now() + DAY_MS,
            )
        )
        pause.go_on.set()
        turn = await turn_of(runtime, first)
        rows = await runtime.store.read("SELECT state FROM turns")

    assert urgent.outcome is Outcome.QUEUED
    assert turn.reply == "undisturbed"
    assert [row[0] for row in rows] == ["done"]


async def test_a_message_that_expired_does_not_join_the_running_turn():
    clock, gate = ManualClock(), Gate()
    model = Scripted([says("", call("gate")), "done"])
    async with in_memory(model, tools=[gate.tool], clock=clock) as runtime:
        first = await runtime.send("go")
        await gate.entered.wait()
        await runtime.accept(operator_draft(MAIN, text="stale", expires_at=clock.now() + 1000))
        clock.advance(5)
        gate.opened.set()
        await turn_of(runtime, first)
        await wait_for(runtime, "stimulus.expired")
        found = await states(runtime)

    assert found == ["done", "expired"]
    assert shown(model.requests[1])[-1] == "tool: open"


async def test_what_waited_through_a_sleep_runs_when_a_message_ends_it():
    clock = ManualClock()
    sleep = Sleep(
        owner=MAIN,
        agent_id="main",
        session_key=MAIN,
        id="sl_1",
        trust=Trust.OPERATOR,
        cause_id=None,
        policy=SleepPolicy.WAKE,
        reason="nothing to do",
        requested_ms=DAY_MS,
        final_ms=DAY_MS,
        created_at=clock.now(),
        wake_at=clock.now() + DAY_MS,
    )
    async with in_memory(Scripted(lambda _: "hi"), clock=clock) as runtime:
        await runtime.store.transact(lambda tx: sleeps.enter(tx, sleep))
        waited = await runtime.send("when you wake", priority="later")
        woke = await runtime.send("wake up")
        turns = [await turn_of(runtime, receipt) for receipt in (woke, waited)]

    assert waited.outcome is Outcome.PARKED
    assert [turn.reply for turn in turns] == ["hi", "hi"]
