"""What people are shown of automations and their runs, on each database."""

import pytest

from tests.conformance.engine.conftest import SettingsFor
from wakeful.automations.wishes import Edits, Wish
from wakeful.models.scripted import Pause, Scripted
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, in_memory, wait_for
from wakeful.views.automations import Ambiguous, AutomationFilter, AutomationState
from wakeful.vocabulary.automation import EverySchedule, MissedWithin, RunState
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.stimulus import OPERATOR

HOUR_S = 3_600
ENDS = ("ok", "error", "skipped", "cancelled", "expired")


def wish(name: str, session: str = "main", every_s: int = HOUR_S) -> Wish:
    return Wish(
        name=name,
        schedule=EverySchedule(every_s=every_s),
        message=f"do {name}",
        session_key=session,
    )


async def ended(runtime: Runtime, run_id: str) -> Event:
    def is_it(event: Event) -> bool:
        is_end = event.kind.removeprefix("automation.") in ENDS
        return is_end and event.data["run_id"] == run_id

    return await wait_for(runtime, "automation.*", is_it)


async def test_a_list_is_narrowed_by_session_agent_and_state_and_goes_on_after_a_page(
    settings_for: SettingsFor,
):
    async with in_memory(settings=settings_for(), clock=ManualClock()) as runtime:
        for name in ("a", "b", "c"):
            await runtime.add_automation(wish(name))
            await runtime.add_automation(wish(f"{name} elsewhere", "system:activity"))
        await runtime.pause_automation("b")
        view = runtime.services.views.automations
        found: dict[str, list[str]] = {}
        for what, wanted in {
            "all": AutomationFilter(),
            "main": AutomationFilter(session_key="agent:main:main"),
            "paused": AutomationFilter(state=AutomationState.PAUSED),
            "on in main": AutomationFilter(
                session_key="agent:main:main", state=AutomationState.ENABLED
            ),
            "of nobody": AutomationFilter(agent_id="nobody"),
        }.items():
            page = await view.page(OPERATOR, wanted, None, 2)
            names = [one.job.name for one in page.items]
            while page.next is not None:
                page = await view.page(OPERATOR, wanted, page.next, 2)
                names += [one.job.name for one in page.items]
            found[what] = names
        foreign = await view.page("somebody", AutomationFilter(), None, 10)

    assert found == {
        "all": ["c elsewhere", "c", "b elsewhere", "b", "a elsewhere", "a"],
        "main": ["c", "b", "a"],
        "paused": ["b"],
        "on in main": ["c", "a"],
        "of nobody": [],
    }
    assert foreign.items == []


async def test_an_owner_sees_those_of_its_sessions_by_id_and_name(settings_for: SettingsFor):
    async with in_memory(Scripted(lambda _: "well"), settings=settings_for()) as runtime:
        await runtime.ask("hi", session="api:a")
        await runtime.store.transact(own)
        mine = await runtime.add_automation(wish("daily", "api:a"))
        other = await runtime.add_automation(wish("other"))
        run = await runtime.run_automation("daily")
        await ended(runtime, run.id)
        view = runtime.services.views.automations
        page = await view.page("a", AutomationFilter(), None, 10)
        by_name = await view.find("daily", "a")
        runs = await view.runs("daily", "a", None, 10)
        seen = await view.run(run.id, "a")
        for named in (other.job.id, "other"):
            with pytest.raises(NotFound):
                await view.find(named, "a")
            with pytest.raises(NotFound):
                await view.runs(named, "a", None, 10)
        with pytest.raises(NotFound):
            await view.run(run.id, "b")

    assert [one.job.id for one in page.items] == [by_name.id] == [mine.job.id]
    assert [one.run.id for one in runs] == [seen.run.id] == [run.id]
    assert seen.run.rendered_prompt is not None
    assert runs[0].run.rendered_prompt is None  # a list has no records


def own(tx: Tx) -> None:
    tx.run("UPDATE sessions SET owner = 'a' WHERE key = 'agent:main:api:a'")


async def test_a_name_of_several_is_no_name_of_one(settings_for: SettingsFor):
    async with in_memory(settings=settings_for()) as runtime:
        first = await runtime.add_automation(wish("daily"))
        await runtime.pause_automation("daily")
        second = await runtime.add_automation(wish("daily"))
        with pytest.raises(Ambiguous) as refused:
            await runtime.remove_automation("daily")
        by_id = await runtime.automation(first.job.id)

    assert refused.value.ids == [first.job.id, second.job.id]
    assert by_id.job.disabled_reason == "paused"


async def test_the_state_of_an_open_run_is_that_of_its_stimulus_and_its_turn(
    settings_for: SettingsFor,
):
    pause, again = Pause("busy"), Pause("at it")
    model = Scripted([pause, again])
    async with in_memory(model, settings=settings_for()) as runtime:
        view = runtime.services.views.automations
        await runtime.add_automation(wish("daily"))
        await runtime.send("hello")
        await pause.reached.wait()
        run = await runtime.run_automation("daily")
        deferred = await runtime.automation_run(run.id)
        (queued,) = await view.queued("agent:main:main")
        pause.go_on.set()
        await again.reached.wait()
        running = await runtime.automation_run(run.id)
        since = (await runtime.automation("daily")).running_since
        left = await view.queued("agent:main:main")
        again.go_on.set()
        await ended(runtime, run.id)
        done = await runtime.automation_run(run.id)
        await runtime.halt()
        waiting = await runtime.run_automation("daily")
        parked = await runtime.automation_run(waiting.id)
        await runtime.remove_automation("daily")
        gone = await runtime.automation_run(waiting.id)

    assert (deferred.state, deferred.reason) == (RunState.DEFERRED, "busy")
    assert (queued.run.id, queued.state) == (run.id, RunState.DEFERRED)
    assert (running.state, left) == (RunState.RUNNING, [])
    assert since is not None
    assert (done.state, done.run.ended_at is not None) == (RunState.OK, True)
    assert (parked.state, parked.reason) == (RunState.PARKED, "halted")
    assert (gone.state, gone.reason) == (RunState.CANCELLED, "by-sender")


async def test_runs_come_newest_first_and_go_on_after_a_page(settings_for: SettingsFor):
    clock = ManualClock()
    async with in_memory(
        Scripted(lambda _: "well"), settings=settings_for(), clock=clock
    ) as runtime:
        job = (await runtime.add_automation(wish("hourly"))).job
        for _ in range(3):
            clock.advance(HOUR_S)
            await ended(runtime, f"{job.id}:{clock.now()}")
        first = await runtime.automation_runs("hourly", limit=2)
        rest = await runtime.automation_runs("hourly", after=first[-1].place)
        with pytest.raises(InvalidInput):
            await runtime.automation_runs("hourly", after="nonsense")

    at = [one.run.scheduled_at for one in (*first, *rest)]
    assert at == [clock.now() - number * HOUR_S * 1000 for number in range(3)]


async def test_what_is_refused_leaves_no_row(settings_for: SettingsFor):
    async with in_memory(settings=settings_for()) as runtime:
        await runtime.add_automation(wish("daily"))
        before = await runtime.store.read("SELECT * FROM automations")
        for changes in (
            Edits(missed=MissedWithin(within_s=0)),
            Edits(session_key="api:nobody"),
            Edits(timeout_s=0),
        ):
            with pytest.raises(InvalidInput):
                await runtime.edit_automation("daily", changes)
        with pytest.raises(InvalidInput):
            await runtime.add_automation(wish("daily"))
        with pytest.raises(InvalidInput):
            await runtime.add_automation(wish("often", every_s=0))
        after = await runtime.store.read("SELECT * FROM automations")

    assert list(before) == list(after)
