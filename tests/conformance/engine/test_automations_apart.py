"""Isolated automations: a transcript for each run, and what others hear of it. System events."""

from typing import Any

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.jobs import (
    HOUR_MS,
    HOUR_S,
    MAIN,
    NOON,
    PATIENT,
    Letters,
    add,
    agent,
    ended,
    filed,
    happened,
    running,
    runs_of,
    said,
    talking,
    texts,
)
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, Scripted, wait_for
from wakeful.vocabulary.automation import RunState
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

OUT = Route(door="out", address="me")
TO_LIST = {"door": "list", "address": "everybody"}
SECRET = "the-provider-said-sk-canary"


async def _hello(runtime: Runtime, **fields: Any) -> None:
    """Speak in main, from a door."""
    known: dict[str, Any] = {"kind": Kind.USER, "source": "me", "route": OUT, **fields}
    draft = Draft(session_key=MAIN, text="hello", trust=Trust.OPERATOR, owner=OPERATOR, **known)
    await runtime.wait(await runtime.accept(draft))


async def _unread(runtime: Runtime) -> int:
    (row,) = await runtime.store.read("SELECT unread FROM sessions WHERE key = :key", key=MAIN)
    return row[0]


async def test_each_run_begins_a_transcript_of_its_own(settings_for: SettingsFor):
    clock, model = ManualClock(NOON), Scripted(["one", "two"])
    async with running(settings_for, model, clock) as runtime:
        job = await add(runtime, isolated=True)
        clock.advance(HOUR_S)
        await ended(runtime)
        clock.advance(HOUR_S)
        await ended(runtime, 2)
        runs = await runs_of(runtime)
        old = await runtime.transcripts(job.session_key)

    assert job.session_key == f"agent:main:automation:{job.id}"
    assert len({run.transcript_id for run in runs}) == 2
    assert None not in {run.transcript_id for run in runs}
    assert [len(one.messages) for one in model.requests] == [1, 1]
    assert len(old) == 2


@pytest.mark.parametrize(
    ("post", "told"),
    [
        ({"mode": "summary"}, "report: " + "x" * 99 + " " + "y" * 99 + "…"),
        ({"mode": "full"}, "report: " + "x" * 99 + "\n" + "y" * 7_900),
        ({"mode": "full", "max_chars": 5, "prefix": "News"}, "News: xxxxx"),
        ({"mode": "none"}, None),
    ],
    ids=["summary", "full", "cut", "none"],
)
async def test_what_a_run_says_is_posted_to_main_and_delivered_without_a_question(
    settings_for: SettingsFor, post: dict[str, Any], told: str | None
):
    clock, door = ManualClock(NOON), Letters()
    model = Scripted(["hi", "x" * 99 + "\n" + "y" * 9_000, "yes"])
    async with running(settings_for, model, clock, doors={"out": door}) as runtime:
        await _hello(runtime)
        await add(runtime, isolated=True, post_to_main=post)
        before = await _unread(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        await happened(runtime, "delivery.acknowledged", 1 + (told is not None))
        shown, after, asked = await texts(runtime), await _unread(runtime), len(model.requests)
        sent = list(door.sent)
        await _hello(runtime)

    if told is None:
        assert (len(shown), after - before, len(sent)) == (2, 0, 1)
        return
    assert shown[2:] == [f"custom_message: {told}"]
    assert after - before == 1
    assert sent[1:] == [("me", told)]
    assert asked == 2
    assert told in said(model.requests[-1])


async def test_a_post_waits_until_main_is_idle(settings_for: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("thinking")
    model = Scripted([pause, "the report"])
    async with running(settings_for, model, clock) as runtime:
        receipt = await runtime.send("work")
        await pause.reached.wait()
        await add(runtime, isolated=True)
        clock.advance(HOUR_S)
        await ended(runtime)
        during = await texts(runtime)
        pause.go_on.set()
        await runtime.wait(receipt)
        await wait_for(
            runtime, "turn.finished", lambda event: event.data["reply"] == "report: the report"
        )
        after = await texts(runtime)

    assert during == ["message: work"]
    assert after[1:] == ["message: thinking", "custom_message: report: the report"]


async def test_a_failed_run_posts_its_closure_and_a_silent_one_nothing(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    model = Scripted([Permanent(SECRET), "NO_REPLY", "", ""])
    async with running(settings_for, model, clock) as runtime:
        await runtime.services.intake.open_activity("main")
        await add(runtime, isolated=True)
        for count in range(3):
            clock.advance(HOUR_S)
            await ended(runtime, count + 1)
        await wait_for(runtime, "turn.finished", lambda event: event.session_key == MAIN)
        runs, shown = await runs_of(runtime), await texts(runtime)

    assert [run.state for run in runs] == [RunState.ERROR, RunState.OK, RunState.OK]
    assert shown == ['custom_message: report: Automation "report" failed (model).']


async def test_a_run_is_delivered_where_its_automation_says_too(settings_for: SettingsFor):
    clock, door = ManualClock(NOON), Letters()
    async with running(
        settings_for, Scripted(["the news"]), clock, doors={"list": door}
    ) as runtime:
        await add(runtime, isolated=True, deliver_to=TO_LIST)
        clock.advance(HOUR_S)
        await ended(runtime)
        await happened(runtime, "delivery.acknowledged")

    assert door.sent == [("everybody", "the news")]


@pytest.mark.parametrize("best_effort", [False, True])
async def test_an_answer_that_does_not_arrive_is_told_by_one_notice_unless_that_is_no_matter(
    settings_for: SettingsFor, best_effort: bool
):
    clock, door = ManualClock(NOON), Letters(Permanent("no such list"))
    async with running(settings_for, talking(), clock, doors={"list": door}) as runtime:
        await add(runtime, isolated=True, deliver_to=TO_LIST, best_effort=best_effort)
        for count in (1, 2):
            clock.advance(HOUR_S)
            await ended(runtime, count)
            await happened(runtime, "delivery.failed", count)
        notices = await runtime.store.read("SELECT text FROM notices")
        runs = await runs_of(runtime)

    assert {run.state for run in runs} == {
        RunState.OK
    }  # that it is not delivered is another matter
    assert len(notices) == (0 if best_effort else 1)
    assert all('"report" could not be delivered to list' in row[0] for row in notices)


async def test_a_post_that_wakes_asks_for_a_heartbeat_wherever_the_heart_beats(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    model = Scripted(["hello", "the report", "I have read it"])
    beats = HeartbeatRules(every="24h", session="ops")
    async with running(
        settings_for, model, clock, agents=[agent(model, heartbeat=beats)]
    ) as runtime:
        await runtime.ask("hello", session="ops")
        await add(runtime, isolated=True, wake="now")
        clock.advance(HOUR_S)
        await ended(runtime)
        clock.advance(1)
        beat = await wait_for(
            runtime, "turn.finished", lambda event: event.data["reply"] == "I have read it"
        )

    assert beat.session_key == "agent:main:ops"


async def test_a_deleted_session_of_runs_leaves_its_automation_as_it_is(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        job = await add(runtime, isolated=True)
        clock.advance(HOUR_S)
        await ended(runtime)
        deleted = await runtime.delete(job.session_key)
        (due,) = await runtime.store.read("SELECT due_at FROM timers WHERE kind = 'automation'")
        clock.advance(HOUR_S)
        await ended(runtime, 2)
        runs = await runs_of(runtime)

    assert deleted.deleted
    assert due[0] == NOON + 2 * HOUR_MS
    assert [run.state for run in runs] == [RunState.OK, RunState.OK]


EVENT = {"kind": "system_event", "text": "the shop opens"}


def _beating(model: Scripted, **rules: Any) -> list[Any]:
    known: dict[str, Any] = {"every": "90m", **rules}
    return [agent(model, heartbeat=HeartbeatRules(**known), limits=PATIENT)]


async def test_an_event_waits_for_the_next_heartbeat_and_ends_with_it(settings_for: SettingsFor):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock, agents=_beating(model)) as runtime:
        await add(runtime, payload=EVENT)
        clock.advance(HOUR_S)
        due = await filed(runtime)
        (waiting,) = await runs_of(runtime)
        asked = len(model.requests)
        clock.advance(30 * 60)
        await ended(runtime)
        (run,) = await runs_of(runtime)

    assert due.data["run_id"] == run.id
    assert (waiting.ended_at, asked) == (None, 0)
    assert (run.state, run.reason) == (RunState.OK, None)
    (request,) = model.requests
    assert any("the shop opens" in text for text in said(request))


async def test_an_event_that_wakes_asks_for_a_heartbeat(settings_for: SettingsFor):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock, agents=_beating(model)) as runtime:
        await add(runtime, payload=EVENT, wake="now")
        clock.advance(HOUR_S)
        await filed(runtime)
        clock.advance(1)
        await ended(runtime)
        (run,) = await runs_of(runtime)
        kinds = await runtime.store.read("SELECT kind FROM turns")

    assert run.state is RunState.OK
    assert kinds == [("heartbeat",)]


@pytest.mark.parametrize("where", ["no heartbeat", "elsewhere"])
async def test_an_event_where_no_heart_beats_opens_a_turn(settings_for: SettingsFor, where: str):
    clock, model = ManualClock(NOON), talking()
    agents = None if where == "no heartbeat" else _beating(model, session="ops")
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime, payload=EVENT, wake="now")
        clock.advance(HOUR_S)
        await ended(runtime)
        (run,) = await runs_of(runtime)
        kinds = await runtime.store.read("SELECT kind FROM turns")

    assert run.state is RunState.OK
    assert kinds == [("system.event",)]


async def test_an_event_opens_its_turn_when_the_heartbeat_is_turned_off(settings_for: SettingsFor):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock, agents=_beating(model)) as runtime:
        await add(runtime, payload=EVENT)
        clock.advance(HOUR_S)
        await filed(runtime)
        await runtime.set_heartbeat(is_on=False)
        await ended(runtime)
        (run,) = await runs_of(runtime)

    assert run.state is RunState.OK


@pytest.mark.parametrize(
    ("what", "state", "reason"),
    [
        ("cancelled", RunState.CANCELLED, "by-sender"),
        ("session deleted", RunState.CANCELLED, "session-deleted"),
        ("removed", RunState.CANCELLED, "by-sender"),
    ],
)
async def test_an_event_that_ends_without_a_turn_ends_its_run(
    settings_for: SettingsFor, what: str, state: RunState, reason: str
):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock, agents=_beating(model)) as runtime:
        await runtime.wait(await runtime.send("hello"))
        job = await add(runtime, payload=EVENT)
        clock.advance(HOUR_S)
        await filed(runtime)
        (waiting,) = await runs_of(runtime)
        if what == "cancelled":
            assert waiting.stimulus_id is not None
            await runtime.cancel(waiting.stimulus_id)
        elif what == "removed":
            from tests.conformance.engine.jobs import ME

            await runtime.services.automations.remove(job.id, ME)
        else:
            await runtime.delete("main", is_confirmed=True)
        (run,) = await runs_of(runtime)

    assert (run.state, run.reason) == (state, reason)


async def test_the_event_of_somebody_outside_is_shown_to_no_heartbeat(settings_for: SettingsFor):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock, agents=_beating(model)) as runtime:
        job = await add(runtime, payload=EVENT, wake="now")
        await runtime.store.transact(
            lambda tx: tx.run("UPDATE automations SET trust = 'external' WHERE id = :id", id=job.id)
        )
        clock.advance(HOUR_S)
        await ended(runtime)
        rows = await runtime.store.read("SELECT kind, trust FROM turns")

    assert rows == [("system.event", "external")]
