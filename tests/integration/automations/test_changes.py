"""What is changed of an automation changes that alone; what is refused leaves it as it was."""

import pytest

from tests.integration.automations.test_importing import kept, legacy, running, taken
from wakeful.automations.acts import NameTaken
from wakeful.automations.wishes import Edits, Wish
from wakeful.testing.kit import ManualClock, in_memory
from wakeful.vocabulary.automation import AgentTurn, EverySchedule, SystemEvent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.route import Route

HOURLY = EverySchedule(every_s=3_600)
MOST = 50  # automations of one session, unless the settings say otherwise
COLUMNS = "name, category, deliver_to, next_run_at, revision, description"


def wish(name: str, **more: object) -> Wish:
    given = {"schedule": HOURLY, "message": "x", "session_key": "main", **more}
    return Wish(name=name, **given)  # pyright: ignore[reportArgumentType] (fields of a wish)


async def test_a_job_of_another_program_keeps_its_route_though_nothing_is_sent_there():
    async with running() as runtime:
        await taken(runtime, legacy("b2"))
        (before,) = await kept(runtime, COLUMNS)
        await runtime.edit_automation("old", Edits(name="news", description="of the day"))
        (after,) = await kept(runtime, COLUMNS)
        with pytest.raises(InvalidInput) as refused:
            await runtime.edit_automation("news", Edits(deliver_to=Route(door="fax", address="1")))

    assert before[1] == "legacy"
    assert after == ("news", *before[1:5], "of the day")
    assert refused.value.field == "deliver_to.door"


async def test_only_another_schedule_moves_what_is_due():
    clock = ManualClock()
    async with in_memory(clock=clock) as runtime:
        made = (await runtime.add_automation(wish("hourly"))).job
        clock.advance(600)
        same = await runtime.edit_automation(
            "hourly", Edits(description="d", message="y", schedule=made.schedule)
        )
        other = await runtime.edit_automation("hourly", Edits(schedule=EverySchedule(every_s=60)))

    assert (same.job.next_run_at, same.job.revision) == (made.next_run_at, 1)
    assert same.job.payload == AgentTurn(message="y")
    assert (other.job.next_run_at, other.job.revision) == (clock.now() + 60_000, 2)


async def test_a_turn_becomes_an_event_and_an_isolated_one_bound():
    async with in_memory() as runtime:
        await runtime.add_automation(wish("one", session_key=None, isolated=True))
        bound = (await runtime.edit_automation("one", Edits(session_key="main"))).job
        event = await runtime.edit_automation("one", Edits(payload=SystemEvent(text="tea")))
        with pytest.raises(InvalidInput) as refused:
            await runtime.edit_automation("one", Edits(isolated=True))
        with pytest.raises(InvalidInput) as worded:
            await runtime.edit_automation("one", Edits(message="x"))

    assert (bound.category, bound.session_key, bound.post_to_main) == (
        "bound",
        "agent:main:main",
        None,
    )
    assert event.job.payload == SystemEvent(text="tea")
    assert refused.value.field == "payload"
    assert worded.value.field == "message"


async def test_the_fifty_first_automation_of_a_session_is_refused_and_not_written():
    async with in_memory() as runtime:
        for number in range(MOST):
            await runtime.add_automation(wish(f"n{number}"))
        with pytest.raises(InvalidInput) as refused:
            await runtime.add_automation(wish("one more"))
        elsewhere = await runtime.add_automation(wish("n", session_key="system:activity"))
        with pytest.raises(InvalidInput) as moved:
            await runtime.edit_automation("n", Edits(session_key="main"))
        renamed = await runtime.edit_automation("n7", Edits(name="seven"))
        ((count,),) = await runtime.store.read("SELECT COUNT(*) FROM automations")
        ((timers,),) = await runtime.store.read(
            "SELECT COUNT(*) FROM timers WHERE kind = 'automation'"
        )

    assert (refused.value.field, moved.value.field) == ("session_key", "session_key")
    assert elsewhere.job.session_key == "agent:main:activity"
    assert renamed.job.name == "seven"
    assert count == timers == MOST + 1


async def test_what_takes_a_name_that_is_taken_stays_as_it_was():
    async with in_memory() as runtime:
        first = (await runtime.add_automation(wish("first"))).job
        second = (await runtime.add_automation(wish("second"))).job
        with pytest.raises(NameTaken) as refused:
            await runtime.edit_automation("second", Edits(name="first", message="y"))
        left = (await runtime.automation("second")).job

    assert refused.value.ids == [first.id]
    assert left == second


async def test_callers_without_a_type_checker_are_told_the_field():
    async with in_memory() as runtime:
        wrong = wish("x", timeout_s="soon")
        with pytest.raises(InvalidInput) as refused:
            await runtime.add_automation(wrong)
        with pytest.raises(InvalidInput) as unknown:
            await runtime.automations(state="perhaps")
        ((count,),) = await runtime.store.read("SELECT COUNT(*) FROM automations")

    assert refused.value.field == "timeout_s"
    assert unknown.value.field == "state"
    assert count == 0
