"""Jobs of nanobot's `jobs.json` are taken over: all that can be meant, or none, and once."""

from datetime import UTC, datetime
from typing import Any

import pytest

from wakeful.automations.importing import ImportOutcome
from wakeful.automations.wishes import Maker
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import OPERATOR, Trust

ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name="me", is_person=True)
NOW = 1_800_000_000_000
MAP = {"telegram:1": "main"}


def bound(job_id: str, **more: Any) -> dict[str, Any]:
    """Return a job that is bound to a conversation, as nanobot writes it."""
    return {
        "id": job_id,
        "name": f"job {job_id}",
        "enabled": True,
        "schedule": {"kind": "every", "everyMs": 60_000},
        "payload": {
            "kind": "agent_turn",
            "message": "look",
            "sessionKey": "telegram:1",
            "originChannel": "telegram",
            "originChatId": "1",
        },
        "state": {"nextRunAtMs": NOW + 20_000, "lastStatus": "ok"},
        "createdAtMs": NOW - 1_000_000,
        **more,
    }


def legacy(job_id: str) -> dict[str, Any]:
    """Return one from before jobs were bound, in the other spelling."""
    return {
        "id": job_id,
        "name": "old",
        "enabled": "true",
        "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "America/New_York"},
        "payload": {
            "kind": "agent_turn",
            "message": "tell me",
            "deliver": True,
            "channel": "telegram",
            "to": "42",
            "channel_meta": {"message_thread_id": 7},
        },
        "created_at_ms": NOW - 1_000_000,
    }


def running() -> Runtime:
    agent = Agent(model=Scripted([]), heartbeat=NO_HEARTBEAT)
    return Runtime(agents=[agent], clock=ManualClock(), settings=Settings(timezone="UTC"))


async def taken(
    runtime: Runtime, *jobs: Any, sessions: dict[str, str] = MAP
) -> list[tuple[str, str, str | None]]:
    told = await runtime.services.automations.import_jobs(jobs, sessions, ME)
    return [(one.id, one.outcome.value, one.why) for one in told]


async def kept(runtime: Runtime, columns: str) -> list[tuple[Any, ...]]:
    rows = await runtime.store.read(f"SELECT {columns} FROM automations ORDER BY imported_from")
    return [tuple(row) for row in rows]


async def test_a_bound_job_goes_on_in_the_session_that_stands_for_its_own():
    async with running() as runtime:
        told = await taken(runtime, bound("a1"))
        (job,) = await kept(runtime, "category, session_key, next_run_at, enabled, imported_from")

    assert told == [("a1", "imported", None)]
    assert job == ("bound", "agent:main:main", NOW + 20_000, 1, "a1")


async def test_a_job_of_no_conversation_keeps_the_route_it_had_and_blocks_no_deletion():
    async with running() as runtime:
        told = await taken(runtime, legacy("b2"))
        (job,) = await kept(runtime, "category, session_key, deliver_to")
        timers = await runtime.store.read("SELECT owner_kind FROM timers WHERE kind = 'automation'")

    assert told == [("b2", "imported", None)]
    assert job[0] == "legacy"
    assert job[1].startswith("agent:main:automation:")
    assert '"door":"telegram","address":"42","thread":"7"' in job[2]
    assert [row[0] for row in timers] == ["job"]


async def test_what_was_imported_before_is_left_alone():
    async with running() as runtime:
        await taken(runtime, bound("a1"), legacy("b2"))
        before = await kept(runtime, "id, updated_at, name")
        told = await taken(runtime, bound("a1", name="another"), legacy("b2"))
        after = await kept(runtime, "id, updated_at, name")

    assert [outcome for _, outcome, _ in told] == ["unchanged", "unchanged"]
    assert after == before


async def test_one_bad_job_keeps_all_of_them_out_and_each_is_told_of():
    six_fields = {"kind": "cron", "expr": "* * * * * *"}
    async with running() as runtime:
        told = await taken(
            runtime,
            bound("a1"),
            bound("a2", schedule=six_fields),
            {**bound("a3"), "payload": {**bound("a3")["payload"], "sessionKey": "slack:9"}},
            bound("a1"),
            "no job at all",
            bound("a4", schedule={"kind": "at", "atMs": NOW - 5}),
            bound("a5", payload={"kind": "system_event", "message": "dream"}),
        )
        assert await kept(runtime, "id") == []

    whys = {place: (outcome, why) for place, (_, outcome, why) in enumerate(told)}
    assert whys[0] == ("skipped", "nothing was imported: others are bad")
    assert whys[1][0] == "bad"
    assert "five" in str(whys[1][1]) or "fields" in str(whys[1][1])
    assert whys[2] == ("bad", "say which session stands for 'slack:9': map it, e.g. to main")
    assert whys[3] == ("bad", "another job of the file has its id")
    assert whys[4] == ("bad", "it is no object")
    assert whys[5] == ("skipped", "its time has passed")
    assert whys[6] == ("skipped", "it is nanobot's own")


async def test_fields_from_before_bound_jobs_are_ignored_and_reported():
    payload = {**bound("a1")["payload"], "deliver": True, "to": "1"}
    async with running() as runtime:
        told = await taken(runtime, bound("a1", payload=payload))
        (job,) = await kept(runtime, "category, deliver_to")

    assert told == [("a1", "imported", "left out: deliver, to")]
    assert job == ("bound", None)


@pytest.mark.parametrize(
    "schedule",
    [
        {"kind": "every", "everyMs": "soon"},
        {"kind": "every"},
        {"kind": "at", "atMs": 9e15},
        {"kind": "lunar"},
        {},
        {"kind": "cron", "expr": "0 9 * * *", "tz": "Mars/Base"},
    ],
)
async def test_a_damaged_schedule_is_bad_and_nothing_else(schedule: dict[str, Any]):
    async with running() as runtime:
        told = await taken(runtime, bound("a1", schedule=schedule))
        assert await kept(runtime, "id") == []

    assert [outcome for _, outcome, _ in told] == [ImportOutcome.BAD]


@pytest.mark.parametrize(
    "past",
    [
        {"state": "garbage"},
        {"state": {"nextRunAtMs": "soon"}},
        {"state": {"nextRunAtMs": -5}},
        {"state": {"next_run_at_ms": str(NOW - 1_000_000), "runHistory": [None]}},
    ],
)
async def test_a_damaged_past_of_a_job_does_not_keep_it_out(past: dict[str, Any]):
    async with running() as runtime:
        told = await taken(runtime, bound("a1", **past))
        (job,) = await kept(runtime, "schedule")

    anchor = datetime.fromtimestamp((NOW - 1_000_000) / 1000, UTC).isoformat()
    assert told == [("a1", "imported", None)]
    assert f'"anchor":"{anchor}"' in job[0]


async def test_a_job_without_any_past_counts_from_its_import():
    async with running() as runtime:
        told = await taken(runtime, bound("a1", createdAtMs=0, state={}))

    assert told == [("a1", "imported", None)]


async def test_more_than_one_write_can_hold_is_refused():
    async with running() as runtime:
        with pytest.raises(InvalidInput, match="at most 1000"):
            await taken(runtime, *({} for _ in range(1001)))
