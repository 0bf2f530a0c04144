"""Proactive mode: a session that is left alone wakes by itself, and its loop never dies."""

from collections.abc import Sequence
from dataclasses import replace as with_hooks
from pathlib import Path

import pytest
from msgspec.structs import replace

from wakeful.assembly.hooks import Hooks
from wakeful.gate.wakes import PASSED, GateVerdict, Verdict, Wake
from wakeful.models.model import Model
from wakeful.models.scripted import Line, Pause
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import (
    ManualClock,
    Scripted,
    call,
    operator_draft,
    says,
    wait_for,
)
from wakeful.triggers.tick_times import next_tick
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey

MAIN = "agent:main:main"
RULES = ProactiveRules(enabled=True, initial_greeting=False)
LONGEST_S = 600 * 1.25
PATIENT = Limits(first_token_s=86_400, idle_s=86_400, answer_s=86_400, wall_s=86_400)


def ticking(
    model: Model | Sequence[Line | Pause],
    clock: ManualClock,
    rules: ProactiveRules = RULES,
    home: Path | None = None,
) -> Runtime:
    voice = model if isinstance(model, Model) else Scripted(model)
    agent = Agent(model=voice, proactive=rules, limits=PATIENT)
    return Runtime(agents=[agent], settings=Settings(home=home), clock=clock)


def always(_request: object) -> str:
    return "NO_REPLY"


async def timers(runtime: Runtime) -> list[int]:
    rows = await runtime.store.read("SELECT due_at FROM timers WHERE kind = 'tick'")
    return [row[0] for row in rows]


async def ticks(runtime: Runtime) -> list[tuple[str, str, str | None]]:
    rows = await runtime.store.read(
        "SELECT text, state, state_reason FROM stimuli WHERE kind = 'tick' ORDER BY id"
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def ended(runtime: Runtime, count: int) -> None:
    """Return when so many turns have ended."""
    found = 0

    def is_last(_event: Event) -> bool:
        nonlocal found
        found += 1
        return found == count

    await wait_for(runtime, "turn.finished", is_last)


async def suppressed(runtime: Runtime, count: int) -> None:
    found = 0

    def is_last(_event: Event) -> bool:
        nonlocal found
        found += 1
        return found == count

    await wait_for(runtime, "stimulus.suppressed", is_last)


def counters(runtime: Runtime) -> dict[str, int]:
    """Return what was counted of what the agent did by itself."""
    return {
        sample.labels["event"]: int(sample.value)
        for family in runtime.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "wakeful_proactive_events_total" and sample.labels["agent"] == "main"
    }


async def test_sleeps_are_counted_with_what_became_of_their_length() -> None:
    clock = ManualClock()
    nap = says("", call("sleep", duration_ms=300_000))
    async with ticking([nap, "NO_REPLY"], clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        await runtime.wait(await runtime.send("wake up"))
        found = counters(runtime)

    assert found == {"sleep.entered": 1, "cache_aware.snapped": 1, "sleep.interrupted": 1}


async def test_a_session_that_was_deleted_is_greeted_anew() -> None:
    clock = ManualClock()
    rules = replace(RULES, initial_greeting=True)
    model = Scripted(always)
    async with ticking(model, clock, rules) as runtime:
        await ended(runtime, 1)
        await runtime.delete("main")
        left = await runtime.store.read("SELECT 1 FROM greetings")

    assert left == []


async def test_the_next_tick_counts_from_the_end_of_the_last_turn() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
        end = clock.now()
        (due,) = await timers(runtime)
        clock.advance((due - end) / 1000)
        await ended(runtime, 2)
        found, after = await ticks(runtime), await timers(runtime)

    assert due == next_tick(MAIN, end, RULES)
    text = f"<tick>\nkind: tick\nelapsed_ms: {due - end}\nreason: interval\n</tick>"
    assert found == [(text, "done", None)]
    assert after == [next_tick(MAIN, due, RULES)]


async def test_a_session_is_greeted_once_even_over_a_restart(tmp_path: Path) -> None:
    clock, greeting = ManualClock(), replace(RULES, initial_greeting=True)
    async with ticking(["Good morning!"], clock, greeting, tmp_path) as first:
        await ended(first, 1)
    async with ticking(Scripted(always), clock, greeting, tmp_path) as second:
        clock.advance(LONGEST_S)
        await ended(second, 2)
        found = await ticks(second)

    assert [text.splitlines()[1] for text, _, _ in found] == ["kind: greeting", "kind: tick"]
    assert "elapsed_ms: 0\nreason: first tick" in found[0][0]


async def test_a_refused_tick_does_not_change_what_the_next_one_counts_from() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
        end = clock.now()
        await runtime.halt()
        clock.advance(LONGEST_S)
        await suppressed(runtime, 1)
        refused_at = clock.now()
        (due,) = await timers(runtime)
        await runtime.resume()
        clock.advance((due - refused_at) / 1000)
        await ended(runtime, 2)
        found = await ticks(runtime)

    assert due == next_tick(MAIN, refused_at, RULES)  # an interval after the one that was refused
    assert f"elapsed_ms: {due - end}\n" in found[-1][0]


async def test_a_sleep_by_hand_does_not_change_what_the_next_tick_counts_from() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
        end = clock.now()
        clock.advance(60)
        await runtime.services.sleep_acts.sleep(SessionKey(MAIN), 60_000)
        rows = await runtime.store.read("SELECT payload FROM timers WHERE kind = 'tick'")

    assert rows == [(f'{{"end_ms":{end}}}',)]


@pytest.mark.parametrize("place", ["where it is accepted", "in its lane"])
async def test_a_first_tick_that_nobody_heard_is_no_greeting(place: str) -> None:
    clock, gate = ManualClock(), RefusesOnce(at=0 if place == "where it is accepted" else 1)
    runtime = ticking(Scripted(always), clock, replace(RULES, initial_greeting=True))
    plan = runtime._plan  # pyright: ignore[reportPrivateUsage]
    runtime._plan = with_hooks(plan, hooks=Hooks(may_wake=gate.may_wake))  # pyright: ignore[reportPrivateUsage]
    async with runtime:
        await suppressed(runtime, 1)
        clock.advance(LONGEST_S)
        await ended(runtime, 1)
        found = await ticks(runtime)

    assert [text.splitlines()[1] for text, _, _ in found] == ["kind: greeting"] * 2


class RefusesOnce:
    """A gate that refuses what it is asked about the first time, or the second."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._asked = 0

    def may_wake(self, _tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        verdict = GateVerdict(verdict=Verdict.QUIET_HOURS) if self._asked == self._at else PASSED
        self._asked += len(wakes)
        return [verdict] * len(wakes)


async def test_a_day_alone_has_the_turns_that_its_interval_gives() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock) as runtime:
        until = clock.now() + 86_400_000
        count = 0
        while (due := (await timers(runtime))[0]) < until:
            clock.advance((due - clock.now()) / 1000)
            count += 1
            await ended(runtime, count)
        left = await timers(runtime)

    assert 144 / 1.25 <= count <= 144 / 0.75
    assert len(left) == 1


@pytest.mark.parametrize("how", ["done", "failed", "stopped", "halted"])
async def test_however_a_tick_ends_there_is_one_next(how: str) -> None:
    clock, pause = ManualClock(), Pause("thinking")
    lines: dict[str, Line | Pause] = {
        "done": "NO_REPLY",
        "failed": ValueError("broken"),
        "stopped": pause,
        "halted": "never said",
    }
    async with ticking([lines[how]], clock) as runtime:
        if how == "halted":
            await runtime.halt()
        clock.advance(LONGEST_S)
        if how == "stopped":
            await pause.reached.wait()
            await runtime.stop()
        if how == "halted":
            await wait_for(runtime, "stimulus.suppressed")
        else:
            await ended(runtime, 1)
        left = await timers(runtime)

    assert len(left) == 1
    assert left[0] > clock.now()


async def test_no_tick_is_filed_while_a_turn_runs() -> None:
    clock, pause = ManualClock(), Pause("thinking")
    async with ticking([pause], clock) as runtime:
        await runtime.send("hello")
        await pause.reached.wait()
        clock.advance(LONGEST_S)
        await wait_for(runtime, "timer.fired")
        found, left = await ticks(runtime), await timers(runtime)
        pause.go_on.set()

    assert found == []
    assert len(left) == 1


async def test_no_tick_is_filed_while_somebodys_words_wait() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock) as runtime:
        await runtime.accept(operator_draft(MAIN, "later", not_before=clock.now() + 86_400_000))
        clock.advance(LONGEST_S)
        await wait_for(runtime, "timer.fired")
        found, left = await ticks(runtime), await timers(runtime)

    assert found == []
    assert len(left) == 1


async def test_what_an_agent_writes_in_a_tick_goes_where_people_spoke_last() -> None:
    clock = ManualClock()
    model = Scripted(["hello", "NO_REPLY", "The build is done."])
    async with ticking(model, clock) as runtime:
        route = Route(door="chat", address="me")
        await runtime.wait(await runtime.accept(operator_draft(MAIN, "hi", route=route)))
        for count in (2, 3):
            clock.advance(LONGEST_S)
            await ended(runtime, count)
        sent = await runtime.store.read("SELECT target, text FROM deliveries ORDER BY id")

    assert [text for _, text in sent] == ["hello", "The build is done."]
    assert sent[0][0] == sent[1][0]


async def test_the_day_is_counted_over_restarts_and_with_the_ends_of_sleeps(tmp_path: Path) -> None:
    clock, rules = ManualClock(), replace(RULES, daily_turn_budget=2)
    nap = says("", call("sleep", duration_ms=60_000))
    async with ticking([nap, "NO_REPLY"], clock, rules, tmp_path) as first:
        clock.advance(LONGEST_S)
        await wait_for(first, "sleep.entered")
        clock.advance(60)
        await ended(first, 2)
    async with ticking(Scripted([]), clock, rules, tmp_path) as second:
        clock.advance(LONGEST_S)
        refused = await wait_for(second, "stimulus.suppressed")

    assert refused.data["reason"] == "budget"


async def test_the_wakes_of_a_session_that_does_not_tick_use_up_nothing() -> None:
    clock, rules = ManualClock(), replace(RULES, daily_turn_budget=1)
    nap = says("", call("sleep", duration_ms=60_000))
    async with ticking([nap, "NO_REPLY", "NO_REPLY"], clock, rules) as runtime:
        await runtime.send("rest", session="agent:main:dm:ann")
        await wait_for(runtime, "sleep.entered")
        clock.advance(60)
        await ended(runtime, 2)
        clock.advance(LONGEST_S)
        await ended(runtime, 3)
        found = await ticks(runtime)

    assert [(state, reason) for _, state, reason in found] == [("done", None)]


async def test_a_sleeper_does_not_tick_until_it_was_woken() -> None:
    clock = ManualClock()
    nap = says("", call("sleep", duration_ms=7_200_000))
    async with ticking([nap, "NO_REPLY"], clock) as runtime:
        await runtime.send("rest")
        entered = await wait_for(runtime, "sleep.entered")
        (due,) = await timers(runtime)
        clock.advance(7_200)
        await wait_for(runtime, "sleep.woken")
        await ended(runtime, 2)
        found = await ticks(runtime)

    assert due > entered.data["wake_at"]
    assert found == []


async def test_a_used_up_day_suppresses_ticks_and_goes_on_later() -> None:
    clock = ManualClock()
    async with ticking(Scripted(always), clock, replace(RULES, daily_turn_budget=2)) as runtime:
        for count in (1, 2):
            clock.advance(LONGEST_S)
            await ended(runtime, count)
        clock.advance(LONGEST_S)
        await wait_for(runtime, "stimulus.suppressed")
        refused = await ticks(runtime)
        clock.advance(LONGEST_S)
        await suppressed(runtime, 2)
        told = await runtime.store.read("SELECT kind, subject FROM notices")
        counted = counters(runtime)
        clock.advance(86_400)
        await ended(runtime, 3)
        left = await timers(runtime)

    assert told == [("daily-turns", "main")]
    assert counted == {"tick.fired": 4, "budget.exhausted": 2}
    assert [(state, reason) for _, state, reason in refused] == [
        ("done", None),
        ("done", None),
        ("suppressed", "budget"),
    ]
    assert len(left) == 1


async def test_switched_off_it_ends_itself_and_switched_on_again_it_has_one_timer() -> None:
    clock, model = ManualClock(), Scripted(always)
    async with ticking(model, clock) as runtime:
        await runtime.reconfigure(agents=[Agent(model=model)])
        clock.advance(LONGEST_S)
        await wait_for(runtime, "timer.fired")
        off, none = await ticks(runtime), await timers(runtime)
        await runtime.reconfigure(agents=[Agent(model=model, proactive=RULES)])
        await runtime.reconfigure(agents=[Agent(model=model, proactive=RULES)])
        one = await timers(runtime)

    assert (off, none) == ([], [])
    assert len(one) == 1


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (ProactiveRules(tick_interval_secs=10), ("at least 60", "allow_short_intervals")),
        (ProactiveRules(tick_interval_secs=600, max_idle_secs=300), ("max_idle_secs",)),
    ],
)
def test_an_interval_that_cannot_be_is_refused(rules: ProactiveRules, words: tuple[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Agent(proactive=rules)

    assert refused.value.field == "proactive.tick_interval_secs"
    assert all(word in refused.value.rule for word in words)


async def test_a_light_tick_sees_nothing_of_the_conversation_and_leaves_no_trace() -> None:
    clock, model = ManualClock(), Scripted(always)
    async with ticking(model, clock, replace(RULES, light_context=True)) as runtime:
        await runtime.wait(await runtime.send("remember the milk"))
        clock.advance(LONGEST_S)
        await ended(runtime, 2)
        await runtime.wait(await runtime.send("and now?"))

    tick, last = model.requests[1], model.requests[2]
    assert "remember the milk" not in str(tick.messages)
    assert "remember the milk" in str(last.messages)


async def test_only_who_may_wake_by_itself_is_told_of_ticks() -> None:
    clock, model, quiet = ManualClock(), Scripted(always), Scripted(always)
    async with ticking(model, clock) as runtime:
        await runtime.wait(await runtime.send("hello"))
    async with ticking(quiet, clock, ProactiveRules()) as runtime:
        await runtime.wait(await runtime.send("hello"))

    assert "<tick>" in model.requests[0].system
    assert "<tick>" not in quiet.requests[0].system


async def test_who_was_not_woken_in_its_time_does_not_tick_before_it_is() -> None:
    clock = ManualClock()
    nap = says("", call("sleep", duration_ms=3_600_000))
    async with ticking([nap], clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        await runtime.set_quiet(clock.now() + 86_400_000)
        clock.advance(3_600)
        await suppressed(runtime, 1)
        (sleeper,) = await runtime.sleeps()
        (due,) = await timers(runtime)
        (agent,) = await runtime.agents()

    assert sleeper.refused == "quiet-hours"
    assert due > sleeper.wake_at
    assert agent.next_wake_at == sleeper.wake_at
