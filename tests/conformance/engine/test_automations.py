"""Bound automations: a turn of their conversation, told in it, with one visible end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

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
    happened,
    job_of,
    lines,
    running,
    runs_of,
    said,
    talking,
    texts,
)
from tests.integration.engine.small import LONG, RULES, Small, uncounted
from wakeful.models.prices import Price, Rate
from wakeful.models.tariffs import Tariff
from wakeful.store.opening import is_postgres
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, says, wait_for
from wakeful.tools.tool import tool
from wakeful.vocabulary.automation import RunCause, RunState
from wakeful.vocabulary.errors import Permanent, Transient
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

TRIGGER = "Scheduled automation triggered: report\n\nwrite the report"
REMINDER = "[Scheduled automation: report]"
SECRET = "the-provider-said-sk-canary"
PRICE = Price(input=Rate(base=1.0), output=Rate(base=4.0))
NOTHING = 'Automation "report" finished with nothing to report.'


async def test_a_run_tells_its_session_what_it_is_and_the_model_what_to_do(
    settings_for: SettingsFor,
):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock) as runtime:
        job = await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        await runtime.wait(await runtime.send("and now?"))
        trigger, answer, *_ = await lines(runtime)
        (run,) = await runs_of(runtime)
        ((origin, source),) = await runtime.store.read(
            "SELECT kind, source FROM turns WHERE id = :id", id=run.turn_id
        )

    body: Any = trigger.content()
    assert (trigger.kind, body.text) == ("automation_trigger", TRIGGER)
    assert body.automation_id == job.id
    assert body.automation_name == "report"
    assert body.automation_run_id == run.id == f"{job.id}:{NOON + HOUR_MS}"
    assert body.automation_prompt_ref == run.prompt_ref
    assert run.prompt_ref is not None
    assert run.rendered_prompt is not None
    assert REMINDER in run.rendered_prompt
    assert (run.state, run.cause, run.attempts) == (RunState.OK, RunCause.SCHEDULE, 1)
    assert (origin, source, answer.turn_id) == ("automation.bound", "cron:report", run.turn_id)
    first, second = map(said, model.requests)
    assert first[-1] == f"{TRIGGER}\n\n{run.rendered_prompt}"
    assert isinstance(model.requests[0].messages[-1], UserMessage)
    assert second == [TRIGGER, "and now?"]


async def test_the_prompt_of_a_run_is_in_its_record_alone(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    async with running(settings_for, talking(), clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        places = await _places_with(runtime, REMINDER)

    assert places == {"automation_runs"}


@tool(name="look")
async def look() -> str:
    """Look."""
    return "seen"


async def test_the_prompt_is_there_in_every_question_of_its_run(settings_for: SettingsFor):
    clock = ManualClock(NOON)
    model = Scripted([says("", call("look")), "done"])
    agents = [agent(model, tools=[look])]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)

    assert [sum(REMINDER in text for text in said(one)) for one in model.requests] == [1, 1]


async def test_a_run_that_was_interrupted_is_told_its_prompt_again_as_the_last_message(
    settings_for: SettingsFor,
):
    clock, pause = ManualClock(NOON), Pause("let me see")
    model = Scripted([pause, "yes?", "the report"])
    async with running(settings_for, model, clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        await runtime.send("stop that, me first", priority="now")
        await ended(runtime)
        (run,) = await runs_of(runtime)
        told = await happened(runtime, "automation.deferred")

    first, others, again = model.requests
    assert REMINDER in said(first)[-1]
    assert not any(REMINDER in text for text in said(others))
    assert [REMINDER in text for text in said(again)][-1]
    assert sum(REMINDER in text for text in said(again)) == 1
    assert (run.state, run.attempts) == (RunState.OK, 2)
    assert told.data["run_id"] == run.id


async def test_a_run_of_a_stranger_is_told_inside_a_fence_and_only_once(
    settings_for: SettingsFor,
):
    clock, model = ManualClock(NOON), talking()
    async with running(settings_for, model, clock) as runtime:
        job = await add(runtime)
        await runtime.store.transact(
            lambda tx: tx.run("UPDATE automations SET trust = 'external' WHERE id = :id", id=job.id)
        )
        clock.advance(HOUR_S)
        await ended(runtime)

    (request,) = model.requests
    assert len(said(request)) == 1
    assert said(request)[0].count("<<<external") == 2
    assert "(of somebody outside)" in said(request)[0]


async def test_somebody_who_quotes_the_line_of_a_run_is_not_told_its_prompt(
    settings_for: SettingsFor,
):
    clock, pause = ManualClock(NOON), Pause("", then=says("", call("look")))
    model = Scripted([pause, "done"])
    agents = [agent(model, tools=[look])]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        await runtime.send(f"what is this: {TRIGGER}")
        pause.go_on.set()
        await ended(runtime)

    opening, steered = said(model.requests[1])
    assert REMINDER in opening
    assert REMINDER not in steered


async def test_a_transcript_with_runs_comes_back_from_a_file_byte_for_byte(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    model = Scripted(["the report", "NO_REPLY", Permanent(SECRET)])
    async with running(settings_for, model, clock) as runtime:
        job = await add(runtime)
        for count in range(3):
            clock.advance(HOUR_S)
            await ended(runtime, count + 1)
        first = b"".join([piece async for piece in runtime.export("main")])
        report = await runtime.import_transcript(_pieces(first), session="agent:main:dm:copy")
        second = b"".join([piece async for piece in runtime.export(report.session_key)])
        runs = await runs_of(runtime)

    assert first == second
    assert first.count(b'"customType":"automation_trigger"') == 3
    for run in runs:
        assert f'"automation_run_id":"{run.id}"'.encode() in first
        assert run.prompt_ref is not None
        assert run.prompt_ref.sha256.encode() in first
    assert f'"automation_id":"{job.id}"'.encode() in first
    assert b'"automation_name":"report"' in first
    assert REMINDER.encode() not in first


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_the_answer_goes_where_people_are_when_it_runs(settings_for: SettingsFor):
    clock, old, new = ManualClock(NOON), Letters(), Letters()
    doors = {"old": old, "new": new}
    async with running(settings_for, talking(), clock, doors=doors) as runtime:
        await runtime.wait(await _from_door(runtime, "old"))
        await add(runtime)
        await runtime.wait(await _from_door(runtime, "new"))
        clock.advance(HOUR_S)
        await ended(runtime)
        await happened(runtime, "delivery.acknowledged", 3)

    assert (len(old.sent), len(new.sent)) == (1, 2)


async def _from_door(runtime: Any, door: str) -> Any:
    return await runtime.accept(
        Draft(
            session_key=MAIN,
            text="hello",
            kind=Kind.USER,
            trust=Trust.OPERATOR,
            owner=OPERATOR,
            source="me",
            route=Route(door=door, address="me"),
        )
    )


@pytest.mark.parametrize(
    ("line", "state", "reason", "closure"),
    [
        ("all is well", RunState.OK, None, "all is well"),
        ("NO_REPLY", RunState.OK, None, NOTHING),
        ("", RunState.OK, None, NOTHING),
        (Permanent(SECRET), RunState.ERROR, "model", 'Automation "report" failed (model).'),
    ],
    ids=["ok", "silent", "empty", "permanent"],
)
async def test_a_run_has_one_visible_end(
    settings_for: SettingsFor, line: Any, state: RunState, reason: str | None, closure: str
):
    clock, door = ManualClock(NOON), Letters()
    again = [line] if line == "" else []  # nothing at all is asked for once more
    model = Scripted(["hello", line, *again])
    async with running(settings_for, model, clock, doors={"out": door}) as runtime:
        await runtime.wait(await _from_door(runtime, "out"))
        await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        await happened(runtime, "delivery.acknowledged", 2)
        (run,) = await runs_of(runtime)
        shown = (await texts(runtime))[2:]
        secret = await _places_with(runtime, SECRET)

    assert (run.state, run.reason) == (state, reason)
    assert [text for text in shown if closure in text] == [shown[-1]]
    assert len([text for text in shown if "Automation" in text]) == (closure != "all is well")
    assert door.sent[1:] == [("me", closure)]
    assert secret <= {"automation_runs", "asks"}  # the ledger of calls has what was answered


async def test_a_provider_that_is_down_for_long_ends_a_run_and_it_is_tried_again(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    model = Scripted([Transient(SECRET), Transient(SECRET), "at last"])
    agents = [agent(model, limits=replace(PATIENT, retries=1))]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime, schedule={"kind": "at", "at": "2026-09-21T13:00:00"})
        clock.advance(HOUR_S)
        left = await wait_for(runtime, "turn.left")
        clock.advance(60)
        await ended(runtime)
        failed = await job_of(runtime)
        secret = await _places_with(runtime, SECRET)
        again = await _retry_at(runtime)
        clock.advance(30)
        await ended(runtime, 2)
        job, (first, second) = await job_of(runtime), await runs_of(runtime)
        shown = await texts(runtime)

    assert left.data["error"] is None
    assert failed is not None
    assert (failed["failures_in_a_row"], failed["last_status"]) == (1, "error")
    assert secret == {"automation_runs", "asks"}
    assert (first.state, first.reason, first.error) == (RunState.ERROR, "model", SECRET)
    assert again == (first.ended_at or 0) + 30_000
    assert (second.id, second.cause) == (f"{first.id}:retry:1", RunCause.RETRY)
    assert second.state is RunState.OK
    assert job is not None
    assert (job["enabled"], job["disabled_reason"], job["failures_in_a_row"]) == (0, "finished", 0)
    assert sum("failed (model)" in text for text in shown) == 1


async def _retry_at(runtime: Any) -> int | None:
    rows = await runtime.store.read("SELECT due_at FROM timers WHERE id LIKE 'automation-retry %'")
    return rows[0][0] if rows else None


async def test_a_limit_a_time_out_and_a_fault_of_ours_are_told_by_a_word(
    settings_for: SettingsFor,
):
    clock, pause = ManualClock(NOON), Pause("hm")
    model = Scripted([says("", call("look")), pause, RuntimeError(SECRET)])
    agents = [agent(model, tools=[look], limits=replace(PATIENT, steps=1))]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime, timeout_s=90)
        clock.advance(HOUR_S)
        await ended(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        clock.advance(89)
        still = await runs_of(runtime)
        clock.advance(2)
        await ended(runtime, 2)
        clock.advance(HOUR_S - 91)
        await ended(runtime, 3)
        runs, shown = await runs_of(runtime), await texts(runtime)
        due = await _retry_at(runtime)

    assert [run.reason for run in runs] == ["limit", "time-out", "model"]
    assert {run.state for run in runs} == {RunState.ERROR}
    assert still[-1].ended_at is None
    closures = [text for text in shown if "Automation" in text and " failed " in text]
    assert [text.rpartition("(")[2] for text in closures] == ["limit).", "time-out).", "model)."]
    assert due is None


async def test_a_stopped_run_is_cancelled_and_says_nothing(settings_for: SettingsFor):
    clock, pause = ManualClock(NOON), Pause("hm")
    async with running(settings_for, Scripted([pause]), clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        await runtime.stop()
        await ended(runtime)
        (run,), shown = await runs_of(runtime), await texts(runtime)
        job = await job_of(runtime)

    assert (run.state, run.reason) == (RunState.CANCELLED, "stop")
    assert not any("Automation" in text for text in shown)
    assert job is not None
    assert job["failures_in_a_row"] == 0


async def test_a_run_that_is_cancelled_after_it_was_cut_off_costs_what_it_cost(
    settings_for: SettingsFor,
):
    clock, pause, busy = ManualClock(NOON), Pause("hm"), Pause("busy")
    model = Scripted([pause, busy], tariff=Tariff(price=PRICE))
    async with running(settings_for, model, clock) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await pause.reached.wait()
        await runtime.send("me first", priority="now")
        await busy.reached.wait()
        (deferred,) = await runs_of(runtime)
        assert deferred.stimulus_id is not None
        await runtime.cancel(deferred.stimulus_id)
        (run,) = await runs_of(runtime)
        ((cost,),) = await runtime.store.read(
            "SELECT cost FROM turns WHERE id = :id", id=deferred.turn_id
        )
        busy.go_on.set()

    assert (run.state, run.attempts) == (RunState.CANCELLED, 2)
    assert cost > 0
    assert run.cost == pytest.approx(cost)


async def _places_with(runtime: Any, words: str) -> set[str]:
    """Return the tables in which words stand anywhere."""
    found: set[str] = set()
    for table in await _tables(runtime):
        rows = await runtime.store.read(f"SELECT * FROM {table}")
        if any(words in str(row) for row in rows):
            found.add(table)
    return found


async def _tables(runtime: Any) -> list[str]:
    if is_postgres(runtime.settings.database):
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    else:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%_fts%'"
    return [row[0] for row in await runtime.store.read(sql)]


async def test_a_run_whose_beginning_was_compacted_is_told_its_prompt_behind_the_summary(
    settings_for: SettingsFor,
):
    clock = ManualClock(NOON)
    model = Small([uncounted(LONG, call("look", f"c{number}")) for number in range(3)] + ["done"])
    agents = [agent(model, tools=[look], compaction=RULES)]
    async with running(settings_for, model, clock, agents=agents) as runtime:
        await add(runtime)
        clock.advance(HOUR_S)
        await ended(runtime)
        (run,) = await runs_of(runtime)

    assert run.state is RunState.OK
    asked = model.replies_asked()
    assert model.summed_up  # what the turn began with among it
    assert [sum(REMINDER in text for text in said(one)) for one in asked] == [1] * len(asked)
    summary, prompt, *_ = said(asked[-1])
    assert TRIGGER not in summary
    assert prompt == run.rendered_prompt
