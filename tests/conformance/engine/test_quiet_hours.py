"""The end of quiet hours: what was put off goes on, what is held is shown, each once."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conformance.engine.conftest import SettingsFor
from wakeful.gate import parked
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Pause, Scripted, wait_for
from wakeful.triggers.quieting import timer_id
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Priority, Trust

MAIN, ACTIVITY = "agent:main:main", "agent:main:activity"
MIDNIGHT = 1_790_000_000_000 // 86_400_000 * 86_400_000
HOUR_S = 3600
HOUR_MS = HOUR_S * 1000
TEN, SEVEN = MIDNIGHT + 22 * HOUR_MS, MIDNIGHT + 31 * HOUR_MS
HOURS = DailyHours(start="22:00", end="07:00")
PATIENT = Limits(first_token_s=86_400, idle_s=86_400, answer_s=86_400, wall_s=86_400)


def night(
    settings_for: SettingsFor,
    model: Scripted,
    clock: ManualClock,
    hours: DailyHours | None = HOURS,
) -> Runtime:
    agents = [with_hours(model, hours)]
    return Runtime(agents=agents, clock=clock, settings=replace(settings_for(), timezone="UTC"))


def later(text: str, session: str = MAIN, **fields: Any) -> Draft:
    """Return what waits until the quiet hours are over."""
    known: dict[str, Any] = {"kind": Kind.WEBHOOK, "source": "alarm", **fields}
    return Draft(session_key=session, text=text, trust=Trust.EXTERNAL, owner=OPERATOR, **known)


def item(text: str, **fields: Any) -> Draft:
    """Return what is held for the agent."""
    return later(text, ACTIVITY, kind=Kind.INBOX, **fields)


def talks(_request: Request) -> str:
    return "well"


async def turns(runtime: Runtime) -> list[tuple[str, str, int]]:
    """Return the sessions and kinds of all turns, with how many stimuli each had."""
    rows = await runtime.store.read(
        "SELECT turns.session_key, turns.kind, COUNT(*) FROM turns "
        "JOIN stimuli ON stimuli.turn_id = turns.id GROUP BY turns.id, turns.session_key, "
        "turns.kind ORDER BY turns.session_key, turns.kind"
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def finished(runtime: Runtime, count: int) -> None:
    found = 0

    def is_last(_event: object) -> bool:
        nonlocal found
        found += 1
        return found == count

    await wait_for(runtime, "turn.finished", is_last)


async def due_at(runtime: Runtime) -> int | None:
    rows = await runtime.store.read("SELECT due_at FROM timers WHERE id = :id", id=timer_id("main"))
    return rows[0][0] if rows else None


def said(request: Request) -> str:
    return "\n".join(one.text for one in request.messages if isinstance(one, UserMessage))


async def test_what_was_parked_in_a_session_opens_one_turn_there_and_jobs_one_each(
    settings_for: SettingsFor,
):
    clock, model = ManualClock(TEN + HOUR_MS), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        drafts = [
            later("one"),
            later("two", source="another"),
            later("three", kind=Kind.HUB, priority=Priority.LATER),
            later("a job", kind=Kind.AUTOMATION),
            later("another job", kind=Kind.AUTOMATION),
            later("elsewhere", "agent:main:dm:ann"),
        ]
        receipts = [await runtime.accept(draft) for draft in drafts]
        clock.advance(8 * HOUR_S)
        await finished(runtime, 4)
        found = await turns(runtime)

    assert {one.outcome for one in receipts} == {Outcome.PARKED}
    assert found == [
        ("agent:main:dm:ann", "webhook", 1),
        (MAIN, "automation.bound", 1),
        (MAIN, "automation.bound", 1),
        (MAIN, "webhook", 3),
    ]


async def test_others_answers_and_another_trust_have_turns_of_their_own(settings_for: SettingsFor):
    clock = ManualClock(TEN)
    async with night(settings_for, Scripted(talks), clock) as runtime:
        own = {"kind": Kind.SUBAGENT_ANNOUNCE, "root_id": "st_gone", "depth": 1}
        for _ in range(2):
            await runtime.accept(
                Draft(session_key=MAIN, text="own", trust=Trust.OPERATOR, owner=OPERATOR, **own)  # pyright: ignore[reportArgumentType]
            )
            await runtime.accept(later("a stranger's"))
        clock.advance(9 * HOUR_S)
        await finished(runtime, 2)
        found = await turns(runtime)

    assert found == [(MAIN, "subagent.announce", 2), (MAIN, "webhook", 2)]


async def test_what_is_held_is_shown_once_in_activity_by_a_digest(settings_for: SettingsFor):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        for number in range(12):
            await runtime.accept(item(f"item {number}"))
        await runtime.accept(item("of no hurry", priority=Priority.LATER))
        clock.advance(9 * HOUR_S)
        await finished(runtime, 1)
        states = await runtime.store.read(
            "SELECT state, COUNT(*) FROM stimuli WHERE kind = 'inbox' GROUP BY state ORDER BY state"
        )
        digests = await runtime.store.read(
            "SELECT session_key, source, state FROM stimuli WHERE kind = 'system.digest'"
        )
        (trust,) = await runtime.store.read("SELECT trust FROM turns")
        next_at = await due_at(runtime)

    (request,) = model.requests
    assert digests == [(ACTIVITY, "quiet-hours", "done")]
    assert states == [("held", 3), ("merged", 10)]
    assert all(f"item {number}\n" in said(request) for number in range(10))
    assert "item 10\n" not in said(request)
    assert "[2 more items wait: check_inbox]" in said(request)
    assert trust == ("external",)
    assert next_at == SEVEN + 24 * HOUR_MS


async def test_a_large_item_leaves_no_place_for_more(settings_for: SettingsFor):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        for letter in "abc":
            await runtime.accept(item(letter * 20_000))
        clock.advance(9 * HOUR_S)
        await finished(runtime, 1)

    assert "a" * 20_000 in said(model.requests[0])
    assert "[2 more items wait: check_inbox]" in said(model.requests[0])


async def test_nothing_held_means_no_digest(settings_for: SettingsFor):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(item("of no hurry", priority=Priority.LATER))
        clock.advance(9 * HOUR_S)
        await wait_for(runtime, "timer.fired")
        clock.advance(24 * HOUR_S)
        await wait_for(runtime, "timer.fired", lambda event: event.data["due_at"] > SEVEN)
        found = await runtime.store.read("SELECT kind FROM stimuli WHERE kind <> 'inbox'")

    assert found == []
    assert model.requests == []


async def test_many_lanes_go_on_in_steps_and_none_is_forgotten(
    settings_for: SettingsFor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(parked, "STEP", 4)
    clock = ManualClock(TEN)
    async with night(settings_for, Scripted(talks), clock, hours=None) as runtime:
        await runtime.set_quiet(SEVEN)
        for number in range(10):
            await runtime.accept(later("ping", f"agent:main:dm:{number}"))
        await runtime.accept(item("for later"))
        await runtime.set_quiet(None)
        await finished(runtime, 11)
        found = await turns(runtime)
        ((fired,),) = await runtime.store.read(
            "SELECT COUNT(*) FROM events WHERE kind = 'timer.fired'"
        )
        left = await runtime.store.read("SELECT id FROM timers WHERE kind = 'quiet'")

    assert len(found) == 11
    assert sum(one[1] == "system.digest" for one in found) == 1
    assert fired == 4  # three with lanes, of four at most, and the last
    assert left == []


async def test_an_end_by_hand_frees_what_waits_at_once_and_the_next_night_is_quiet_again(
    settings_for: SettingsFor,
):
    clock = ManualClock(TEN)
    async with night(settings_for, Scripted(talks), clock) as runtime:
        receipt = await runtime.accept(later("ping"))
        before = await runtime.quiet()
        after = await runtime.set_quiet(None)
        turn = await runtime.wait(receipt)
        passed = await runtime.wait(await runtime.accept(later("pong")))
        await wait_for(runtime, "timer.fired")
        next_at = await due_at(runtime)
        clock.advance(24 * HOUR_S)
        again = await runtime.accept(later("next night"))
        shown = await runtime.quiet()

    assert (before.is_quiet, before.until, before.by) == (True, SEVEN, "settings")
    assert (after.is_quiet, after.until, after.by) == (False, None, None)
    assert turn is not None
    assert passed is not None
    assert next_at == SEVEN + 24 * HOUR_MS
    assert (again.outcome, again.look_at) == (Outcome.PARKED, SEVEN + 24 * HOUR_MS)
    assert (shown.until, shown.by) == (SEVEN + 24 * HOUR_MS, "settings")


async def test_a_longer_and_a_shorter_quiet_are_what_everything_waits_for(
    settings_for: SettingsFor,
):
    clock = ManualClock(TEN)
    async with night(settings_for, Scripted(talks), clock) as runtime:
        first = await runtime.accept(later("one"))
        longer = await runtime.set_quiet(SEVEN + HOUR_MS)
        second = await runtime.accept(later("two"))
        await wait_for(runtime, "timer.fired")
        parked_until = await _parked_until(runtime)
        shorter = await runtime.set_quiet(TEN + HOUR_MS)
        await _fired(runtime, 3)
        then_until = await _parked_until(runtime)
        clock.advance(9 * HOUR_S)
        await runtime.wait(first)
        await runtime.wait(second)
        found = await turns(runtime)

    assert (longer.until, longer.by) == (SEVEN + HOUR_MS, "operator")
    assert parked_until == [SEVEN + HOUR_MS] * 2
    assert shorter.until == SEVEN  # where the operator's ends, the settings' hours go on
    assert then_until == [SEVEN] * 2
    assert found == [(MAIN, "webhook", 2)]


async def _parked_until(runtime: Runtime) -> list[int]:
    rows = await runtime.store.read("SELECT due_at FROM stimuli WHERE state = 'parked'")
    return [row[0] for row in rows]


async def _fired(runtime: Runtime, count: int, since: int = 0) -> None:
    found = 0

    def is_last(event: Event) -> bool:
        nonlocal found
        found += event.data["due_at"] >= since
        return found == count

    await wait_for(runtime, "timer.fired", is_last)


def with_hours(model: Scripted, hours: DailyHours | None) -> Agent:
    return Agent(model=model, heartbeat=NO_HEARTBEAT, quiet_hours=hours, limits=PATIENT)


@pytest.mark.parametrize(
    "hours",
    [
        None,
        DailyHours(start="23:00", end="07:00"),
        DailyHours(start="22:00", end="07:00", timezone="Asia/Tokyo"),
    ],
)
async def test_settings_that_end_the_quiet_free_what_waits(
    settings_for: SettingsFor, hours: DailyHours | None
):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(later("ping"))
        await runtime.accept(item("held"))
        await runtime.reconfigure(agents=[with_hours(model, hours)])
        await finished(runtime, 2)
        found = await turns(runtime)

    assert found == [(ACTIVITY, "system.digest", 2), (MAIN, "webhook", 1)]


@pytest.mark.parametrize("end", ["05:00", "09:00"])
async def test_settings_with_another_end_hold_for_what_waits(settings_for: SettingsFor, end: str):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(later("ping"))
        await runtime.accept(item("held"))
        hours = DailyHours(start="22:00", end=end)
        await runtime.reconfigure(agents=[with_hours(model, hours)])
        await _fired(runtime, 2)
        waits_until, early = await _parked_until(runtime), list(model.requests)
        clock.advance((waits_until[0] - clock.now()) / 1000)
        await finished(runtime, 2)

    assert waits_until == [MIDNIGHT + (24 + int(end[:2])) * HOUR_MS]
    assert early == []


async def test_hours_from_a_time_to_the_same_time_never_end(settings_for: SettingsFor):
    clock, model = ManualClock(TEN), Scripted(talks)
    hours = DailyHours(start="07:00", end="07:00")
    async with night(settings_for, model, clock, hours) as runtime:
        await runtime.accept(later("ping"))
        await runtime.accept(item("held"))
        clock.advance(9 * HOUR_S)
        await _fired(runtime, 2, since=SEVEN)
        next_at = await due_at(runtime)
        waits_until = await _parked_until(runtime)

    assert model.requests == []
    assert next_at == SEVEN + 24 * HOUR_MS
    assert waits_until == [next_at]


async def test_settings_that_change_in_the_daytime_end_nothing(settings_for: SettingsFor):
    clock, model = ManualClock(MIDNIGHT + 12 * HOUR_MS), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(item("held"))
        first = await due_at(runtime)
        hours = DailyHours(start="22:00", end="08:00")
        await runtime.reconfigure(agents=[with_hours(model, hours)])
        second = await due_at(runtime)
        await runtime.reconfigure(agents=[with_hours(model, None)])
        third = await due_at(runtime)
        off = await runtime.set_quiet(None)

    assert (first, second, third) == (SEVEN, SEVEN + HOUR_MS, None)
    assert not off.is_quiet
    assert model.requests == []


async def test_a_digest_is_no_turn_where_nothing_is_held_any_more(settings_for: SettingsFor):
    clock, pause = ManualClock(TEN), Pause("busy")
    async with night(settings_for, Scripted([pause]), clock) as runtime:
        held = await runtime.accept(item("held"))
        await runtime.send("work", session="activity")
        await pause.reached.wait()
        clock.advance(9 * HOUR_S)
        filed = await wait_for(
            runtime, "stimulus.accepted", lambda event: event.data["origin"] == "system"
        )
        await runtime.cancel(held.stimulus_id)
        pause.go_on.set()
        ended = await wait_for(
            runtime, "stimulus.suppressed", lambda event: event.stimulus_id == filed.stimulus_id
        )

    assert ended.data["reason"] == "nothing-held"


def _texts(requests: Sequence[Request]) -> list[str]:
    return [said(request) for request in requests]


async def test_a_person_who_comes_first_is_answered_first(settings_for: SettingsFor):
    clock, model = ManualClock(TEN), Scripted(talks)
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(later("in the night"))
        await runtime.wait(await runtime.send("are you there?"))
        clock.advance(9 * HOUR_S)
        await finished(runtime, 2)

    first, second = _texts(model.requests)
    assert "in the night" not in first
    assert "in the night" in second


async def test_what_is_held_is_read_by_the_next_turn_when_its_digest_is_interrupted(
    settings_for: SettingsFor,
):
    clock, pause = ManualClock(TEN), Pause("let me see")
    model = Scripted([pause, "first you", "now the rest"])
    async with night(settings_for, model, clock) as runtime:
        held = await runtime.accept(item("the backup failed"))
        clock.advance(9 * HOUR_S)
        await pause.reached.wait()
        await runtime.send("me first", session="activity", priority="now")
        await finished(runtime, 3)
        (state,) = await runtime.store.read(
            "SELECT state FROM stimuli WHERE id = :id", id=held.stimulus_id
        )
        states = await runtime.store.read("SELECT state FROM turns ORDER BY id")

    assert states == [("preempted",), ("done",), ("done",)]
    assert state == ("merged",)
    assert all(text.count("the backup failed") == 1 for text in _texts(model.requests))


@pytest.mark.parametrize("how", ["fails", "is stopped"])
async def test_what_is_held_is_read_by_the_next_turn_when_its_digest(
    settings_for: SettingsFor, how: str
):
    clock, pause = ManualClock(TEN), Pause("let me see")
    model = Scripted([Permanent("the key is wrong") if how == "fails" else pause, "well"])
    async with night(settings_for, model, clock) as runtime:
        await runtime.accept(item("the backup failed"))
        clock.advance(9 * HOUR_S)
        if how == "is stopped":
            await pause.reached.wait()
            await runtime.stop("activity")
        await finished(runtime, 1)
        await runtime.wait(await runtime.send("anything new?", session="activity"))

    assert _texts(model.requests)[-1].count("the backup failed") == 1
