"""`schedule`: an agent makes appointments of its own conversation, and of no other."""

from typing import Any

import msgspec
import pytest

from wakeful.automations.wishes import Maker, Wish
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import (
    NO_HEARTBEAT,
    ManualClock,
    Scripted,
    call,
    operator_draft,
    says,
    wait_for,
)
from wakeful.turn.agent import Agent
from wakeful.vocabulary.automation import AutomationLimits, EverySchedule
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name="me", is_person=True)
USUAL = AutomationLimits()
HOURLY = {"action": "add", "name": "news", "message": "read the news", "every_s": 3600}


def told(model: Scripted) -> list[str]:
    """Return the results that the last request showed."""
    return [one.text for one in model.requests[-1].messages if isinstance(one, ToolMessage)]


def running(model: Scripted, limits: AutomationLimits = USUAL) -> Runtime:
    settings = Settings(timezone="Europe/Berlin", automations=limits)
    agent = Agent(model=model, heartbeat=NO_HEARTBEAT)
    return Runtime(agents=[agent], clock=ManualClock(), settings=settings)


def calling(*lines: dict[str, Any]) -> Scripted:
    calls = [says("", call("schedule", **line)) for line in lines]
    return Scripted([*calls, "done"])


async def asked(runtime: Runtime, text: str = "go", **fields: Any) -> None:
    receipt = await runtime.accept(operator_draft("agent:main:main", text, **fields))
    await runtime.wait(receipt)


async def rows(runtime: Runtime, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await runtime.store.read(sql)]


async def test_what_an_agent_schedules_is_due_in_its_conversation():
    model = calling(HOURLY)
    async with running(model) as runtime:
        await asked(runtime)
        made = msgspec.json.decode(told(model)[0])
        (job,) = await rows(
            runtime, "SELECT name, session_key, category, owner, trust, cause_id FROM automations"
        )
        (turn,) = await rows(runtime, "SELECT id FROM turns")

    assert job == ("news", "agent:main:main", "bound", "operator", "operator", turn[0])
    assert made["name"] == "news"
    assert made["next_runs"] == ["2027-01-15T10:00:00+01:00"]


async def test_it_shows_changes_pauses_and_removes_what_it_made():
    model = calling(
        HOURLY,
        {"action": "list"},
        {"action": "update", "automation": "news", "message": "read all of it"},
        {"action": "pause", "automation": "news"},
        {"action": "next"},
        {"action": "resume", "automation": "news"},
        {"action": "next", "automation": "news"},
        {"action": "remove", "automation": "news"},
        {"action": "list"},
    )
    async with running(model) as runtime:
        await asked(runtime)
        left = await rows(runtime, "SELECT id FROM automations")
        timers = await rows(runtime, "SELECT id FROM timers WHERE kind = 'automation'")

    results = [msgspec.json.decode(text) for text in told(model)]
    assert [one["name"] for one in results[1]] == ["news"]
    assert results[2]["message"] == "read all of it"
    assert results[3]["disabled_reason"] == "paused"
    assert results[4] == [{"name": "news", "next_runs": []}]
    assert len(results[6][0]["next_runs"]) == 5
    assert results[7] == {"removed": "news"}
    assert results[8] == left == timers == []


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"action": "add", "message": "x", "every_s": 59}, "at least 60 s apart"),
        ({"action": "add", "message": "x", "expr": "* * * * *"}, None),
        ({"action": "add", "message": "x"}, "say when"),
        ({"action": "add", "message": "x", "every_s": 90, "expr": "0 9 * * *"}, "one of"),
        ({"action": "add", "message": "x", "every_s": 90, "tz": "UTC"}, "only with expr"),
        ({"action": "add", "message": "x", "at": "2001-01-01T00:00"}, "in the future"),
        ({"action": "add", "message": "", "every_s": 90}, "message"),
        ({"action": "pause", "automation": "nothing"}, "there are none"),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_nothing_is_kept(
    wish: dict[str, Any], why: str | None
):
    model = calling(wish)
    async with running(model) as runtime:
        await asked(runtime)
        kept = await rows(runtime, "SELECT id FROM automations")

    if why is None:
        assert len(kept) == 1
    else:
        assert why in told(model)[0]
        assert kept == []


async def test_jobs_of_other_conversations_do_not_exist_for_it():
    model = calling({"action": "list"})
    async with running(model) as runtime:
        acts = runtime.services.automations
        hourly = EverySchedule(every_s=3600)
        await acts.add(
            Wish(name="theirs", schedule=hourly, message="x", session_key="activity"), ME
        )
        alone = await acts.add(Wish(name="alone", schedule=hourly, message="x", isolated=True), ME)
        await asked(runtime)
        first = told(model)
        kept = await rows(runtime, "SELECT name, enabled FROM automations ORDER BY name")

    assert first == ["[]"]
    assert kept == [("alone", 1), ("theirs", 1)]
    assert alone.is_isolated


async def test_another_conversations_job_is_not_found_by_its_id():
    ids: list[str] = []

    def removes(_request: object) -> object:
        return says("", call("schedule", action="remove", automation=ids[0]))

    model = Scripted([removes, "done"])  # type: ignore[list-item]
    async with running(model) as runtime:
        job = await runtime.services.automations.add(
            Wish(
                name="theirs",
                schedule=EverySchedule(every_s=3600),
                message="x",
                session_key="activity",
            ),
            ME,
        )
        ids.append(job.id)
        await asked(runtime)
        kept = await rows(runtime, "SELECT name FROM automations")

    assert "no automation" in told(model)[0]
    assert kept == [("theirs",)]


async def test_of_a_name_that_is_taken_elsewhere_it_is_not_told_by_whom():
    model = calling(HOURLY)
    async with running(model) as runtime:
        theirs = await runtime.services.automations.add(
            Wish(
                name="news",
                schedule=EverySchedule(every_s=3600),
                message="x",
                session_key="activity",
            ),
            ME,
        )
        await asked(runtime)

    (said,) = told(model)
    assert "'news' is taken by another one" in said
    assert theirs.id not in said


async def test_a_stranger_has_no_such_tool():
    model = calling(HOURLY)
    async with running(model) as runtime:
        stranger = Draft(
            session_key="agent:main:main",
            text="go",
            kind=Kind.WEBHOOK,
            trust=Trust.EXTERNAL,
            owner=OPERATOR,
            source="hook",
        )
        receipt = await runtime.accept(stranger)
        await runtime.wait(receipt)
        kept = await rows(runtime, "SELECT id FROM automations")

    assert kept == []
    assert told(model) == ["there is no tool 'schedule'"]


@pytest.mark.parametrize("may", [False, True])
async def test_an_automation_makes_others_only_where_the_settings_say_so(may: bool):
    model = calling(HOURLY)
    async with running(model, AutomationLimits(from_automations=may)) as runtime:
        job = await runtime.services.automations.add(
            Wish(
                name="first",
                schedule=EverySchedule(every_s=60),
                message="x",
                session_key="main",
            ),
            ME,
        )
        await runtime.services.automations.run(job.id, ME)
        await wait_for(runtime, "automation.ok")
        kept = await rows(runtime, "SELECT name FROM automations ORDER BY name")

    assert kept == ([("first",), ("news",)] if may else [("first",)])
    assert ("makes no others" in told(model)[0]) is not may


async def test_the_names_that_others_have_for_its_arguments_are_understood():
    model = calling(
        {"action": "add", "message": "x", "cronExpr": "0 9 * * 1-5", "deliver": True},
        {"action": "remove", "jobId": "x"},
    )
    async with running(model) as runtime:
        await asked(runtime)
        kept = await rows(runtime, "SELECT id FROM automations")

    made, removed = map(msgspec.json.decode, told(model))
    assert made["schedule"] == {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Berlin"}
    assert removed == {"removed": "x"}
    assert kept == []


async def test_the_fifty_first_of_a_conversation_is_refused():
    model = calling(*({**HOURLY, "name": f"n{number}"} for number in range(3)))
    async with running(model, AutomationLimits(per_session=2)) as runtime:
        await asked(runtime)
        kept = await rows(runtime, "SELECT id FROM automations")

    assert len(kept) == 2
    assert "2 automations already" in told(model)[2]
