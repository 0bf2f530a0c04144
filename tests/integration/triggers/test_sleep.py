"""Sleep: a session rests until its time is over, or until somebody needs it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wakeful.models.model import Reply
from wakeful.models.windows import ModelSettings
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import (
    ManualClock,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.tools.tool import tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Priority

MAIN = "agent:main:main"
HOUR_MS = 3_600_000
HOUR_S = HOUR_MS / 1000
FOLLOWUP = QueueOverrides(mode=Mode.FOLLOWUP)


def nap(
    duration_ms: int = HOUR_MS, reason: str = "until the build is done", text: str = ""
) -> Reply:
    return says(text, call("sleep", duration_ms=duration_ms, reason=reason))


async def fall_asleep(runtime: Runtime) -> Event:
    await runtime.wait(await runtime.send("rest"))
    return await wait_for(runtime, "sleep.entered")


async def asleep(runtime: Runtime) -> int:
    ((count,),) = await runtime.store.read("SELECT COUNT(*) FROM sleeps")
    return count


async def wakes(runtime: Runtime) -> list[tuple[str, str, str | None]]:
    rows = await runtime.store.read(
        "SELECT text, state, state_reason FROM stimuli WHERE kind = 'wake' ORDER BY id"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def ended(reply: str) -> Callable[[Event], bool]:
    return lambda event: event.data["reply"] == reply


async def test_a_sleeper_is_woken_once_and_told_for_how_long_and_why() -> None:
    clock = ManualClock()
    async with in_memory([nap(text="I rest."), "Good morning."], clock=clock) as runtime:
        entered, began = await fall_asleep(runtime), clock.now()
        clock.advance(HOUR_S)
        woken = await wait_for(runtime, "sleep.woken")
        await wait_for(runtime, "turn.finished", ended("Good morning."))
        left, filed = await asleep(runtime), await wakes(runtime)

    assert (entered.data["final_ms"], entered.data["by"]) == (HOUR_MS, "tool")
    assert entered.data["wake_at"] == began + HOUR_MS
    assert (woken.data["reason"], woken.data["slept_ms"]) == ("timer", HOUR_MS)
    assert left == 0
    block = (
        f"<tick>\nkind: sleep_wake\nelapsed_ms: {HOUR_MS}\nreason: until the build is done\n</tick>"
    )
    assert filed == [(block, "done", None)]


async def test_what_was_said_beside_a_sleep_is_the_reply() -> None:
    async with in_memory([nap(text="I rest.")]) as runtime:
        turn = await runtime.wait(await runtime.send("rest"))

    assert turn is not None
    assert (turn.state, turn.reply) == (TurnState.DONE, "I rest.")


async def test_the_last_of_several_sleeps_counts() -> None:
    both = says("", call("sleep", "a", duration_ms=60_000), call("sleep", "b", duration_ms=HOUR_MS))
    async with in_memory([both]) as runtime:
        entered = await fall_asleep(runtime)
        count = await asleep(runtime)

    assert (entered.data["final_ms"], count) == (HOUR_MS, 1)


async def test_a_message_ends_the_sleep_and_its_timer_finds_nothing() -> None:
    clock = ManualClock()
    async with in_memory([nap(), "Here I am.", "never said"], clock=clock) as runtime:
        await fall_asleep(runtime)
        clock.advance(60)
        turn = await runtime.wait(await runtime.send("hello?"))
        woken = await wait_for(runtime, "sleep.woken")
        clock.advance(HOUR_S)
        await wait_for(runtime, "timer.fired")
        filed = await wakes(runtime)

    assert turn is not None
    assert turn.reply == "Here I am."
    assert (woken.data["reason"], woken.data["slept_ms"]) == ("interrupted", 60_000)
    assert filed == []


async def test_what_may_wait_waits_for_the_end_of_the_sleep_and_is_counted() -> None:
    clock = ManualClock()
    async with in_memory([nap(), "later", "awake"], clock=clock) as runtime:
        await fall_asleep(runtime)
        receipt = await runtime.accept(operator_draft(MAIN, "no hurry", priority=Priority.LATER))
        clock.advance(HOUR_S)
        await wait_for(runtime, "sleep.woken")
        await wait_for(
            runtime, "stimulus.done", lambda event: event.stimulus_id == receipt.stimulus_id
        )
        ((text, _, _),) = await wakes(runtime)

    assert (receipt.outcome, receipt.reason) == (Outcome.PARKED, "asleep")
    assert "buffered: 1\n</tick>" in text


async def test_an_automation_runs_and_leaves_the_sleep_armed() -> None:
    async with in_memory([nap(), "checked"]) as runtime:
        await fall_asleep(runtime)
        draft = operator_draft(MAIN, "check the build", kind=Kind.AUTOMATION)
        turn = await runtime.wait(await runtime.accept(draft))
        count = await asleep(runtime)

    assert turn is not None
    assert turn.reply == "checked"
    assert count == 1


async def test_a_turn_that_does_not_end_well_leaves_nobody_asleep() -> None:
    @tool(effect="effect")
    async def explode() -> str:
        """Wait for the end of the turn."""
        await runtime.stop()
        return "gone"

    both = says("", call("sleep", duration_ms=HOUR_MS), call("explode"))
    runtime = in_memory([both], tools=[explode])
    async with runtime:
        turn = await runtime.wait(await runtime.send("rest"))
        count = await asleep(runtime)
        timers = await runtime.store.read("SELECT 1 FROM timers WHERE kind = 'sleep'")

    assert turn is not None
    assert turn.state is TurnState.STOPPED
    assert (count, timers) == (0, [])


async def test_nobody_sleeps_before_the_other_tools_of_the_reply_have_acted() -> None:
    seen: list[int] = []

    @tool(effect="effect")
    async def act() -> str:
        """Look who sleeps."""
        seen.append(await asleep(runtime))
        return "done"

    both = says("", call("sleep", duration_ms=HOUR_MS, reason="rest"), call("act"))
    runtime = in_memory([both], tools=[act])
    async with runtime:
        await runtime.wait(await runtime.send("rest"))
        count = await asleep(runtime)
        ((told,),) = await runtime.store.read(
            "SELECT body FROM entries WHERE body LIKE '%requested_ms%'"
        )

    assert (seen, count) == ([0], 1)
    fields = ("requested_ms", "clamped_ms", "final_ms", "wake_at")
    assert all(name in told for name in fields)


async def test_somebody_who_waits_at_the_end_of_the_turn_keeps_it_awake() -> None:
    @tool(effect="read")
    async def listen() -> str:
        """Let somebody speak meanwhile."""
        await runtime.accept(operator_draft(MAIN, "wait!", priority=Priority.NEXT, source="friend"))
        return "nothing"

    script = [says("", call("listen"), call("sleep", duration_ms=HOUR_MS)), "I hear you."]
    settings = Settings(queue=FOLLOWUP)
    runtime = in_memory(script, tools=[listen], settings=settings)
    async with runtime:
        await runtime.send("rest")
        woken = await wait_for(runtime, "sleep.woken")
        await wait_for(runtime, "turn.finished", ended("I hear you."))
        count = await asleep(runtime)

    assert (woken.data["reason"], woken.data["slept_ms"]) == ("interrupted", 0)
    assert count == 0


async def test_a_sleep_outlasts_a_restart_and_wakes_once(tmp_path: Path) -> None:
    clock = ManualClock()

    def runtime(*lines: str | Reply) -> Runtime:
        agent = Agent(model=Scripted(lines))
        return Runtime(agents=[agent], settings=Settings(home=tmp_path), clock=clock)

    async with runtime(nap()) as first:
        await fall_asleep(first)
    clock.advance(2 * HOUR_S)
    async with runtime("Good morning.") as second:
        await wait_for(second, "turn.finished", ended("Good morning."))
        filed = await wakes(second)

    assert [state for _, state, _ in filed] == ["done"]
    assert f"elapsed_ms: {2 * HOUR_MS}\n" in filed[0][0]


async def test_a_halted_sleeper_wakes_as_soon_as_the_halt_is_lifted() -> None:
    clock = ManualClock()
    async with in_memory([nap(), "Good morning."], clock=clock) as runtime:
        await fall_asleep(runtime)
        await runtime.halt()
        clock.advance(HOUR_S)
        await wait_for(runtime, "stimulus.suppressed")
        still = await asleep(runtime)
        await runtime.resume()
        await wait_for(runtime, "turn.finished", ended("Good morning."))
        filed = await wakes(runtime)

    assert still == 1
    assert [(state, reason) for _, state, reason in filed] == [
        ("suppressed", "halted"),
        ("done", None),
    ]


async def test_a_wake_that_is_refused_before_its_time_leaves_the_sleep_as_long_as_it_was() -> None:
    clock = ManualClock()
    async with in_memory([nap(), "Good morning."], clock=clock) as runtime:
        await fall_asleep(runtime)
        (before,) = await runtime.sleeps()
        await runtime.halt()
        refused = await runtime.wake("main")
        (after,) = await runtime.sleeps()
        await runtime.resume()
        clock.advance(HOUR_S)
        await wait_for(runtime, "turn.finished", ended("Good morning."))

    assert (refused.woken, refused.reason) == (False, "halted")
    assert after.wake_at == before.wake_at


async def test_a_deleted_session_sleeps_no_more() -> None:
    async with in_memory([nap()]) as runtime:
        await fall_asleep(runtime)
        await runtime.delete("main")
        count = await asleep(runtime)
        timers = await runtime.store.read("SELECT 1 FROM timers WHERE kind = 'sleep'")

    assert (count, timers) == (0, [])


@pytest.mark.parametrize("wish", [0, -1, "soon"])
async def test_a_sleep_of_no_length_is_refused_and_the_turn_goes_on(wish: object) -> None:
    script = [says("", call("sleep", duration_ms=wish)), "Then I stay awake."]
    async with in_memory(script) as runtime:
        turn = await runtime.wait(await runtime.send("rest"))
        count = await asleep(runtime)

    assert turn is not None
    assert (turn.reply, count) == ("Then I stay awake.", 0)


class _Named(Scripted):
    """A scripted model with the name of a real one, about which the settings say something."""

    @property
    def name(self) -> str:
        return "vllm:qwen"


async def test_a_sleep_keeps_off_the_cache_edges_of_the_agent_s_own_model() -> None:
    known = {"vllm:qwen": ModelSettings(cache_edges_ms=(60_000, HOUR_MS))}
    model = _Named([nap(HOUR_MS - 60_000), "awake"])
    async with in_memory(model, settings=Settings(models=known)) as runtime:
        by_tool = await fall_asleep(runtime)
        await runtime.services.sleep_acts.wake(SessionKey(MAIN))
        await wait_for(runtime, "turn.finished", ended("awake"))
        by_operator = await runtime.services.sleep_acts.sleep(SessionKey(MAIN), 120_000)

    assert by_tool.data["final_ms"] == HOUR_MS
    assert by_operator.final_ms == 60_000
