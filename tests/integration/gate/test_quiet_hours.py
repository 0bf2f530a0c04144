"""Quiet hours: people and what is urgent wake an agent, the rest waits for their end."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.integration.gate.spending import MAIN, NOON, outsider, paid
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, call, operator_draft, says, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Outcome, Priority

HOURS = DailyHours(start="11:00", end="13:30")
HALF_PAST_ONE = NOON + 90 * 60_000


def at_noon(model: Scripted, clock: ManualClock) -> Runtime:
    agent = Agent(model=model, quiet_hours=HOURS)
    return Runtime(agents=[agent], clock=clock, settings=Settings(timezone="UTC"))


async def test_what_is_not_urgent_waits_for_the_end_of_the_quiet_hours():
    clock = ManualClock(NOON)
    async with at_noon(Scripted(["later"]), clock) as runtime:
        job = operator_draft(MAIN, "report", kind=Kind.AUTOMATION, source="cron:daily")
        parked = await runtime.accept(job)
        clock.advance(90 * 60)
        turn = await runtime.wait(parked)

    assert (parked.outcome, parked.reason) == (Outcome.PARKED, "quiet-hours")
    assert parked.look_at == HALF_PAST_ONE
    assert turn is not None
    assert turn.reply == "later"


async def test_people_and_what_is_urgent_wake_it_all_the_same():
    async with at_noon(Scripted(["yes", "at once"]), ManualClock(NOON)) as runtime:
        person = await runtime.wait(await runtime.send("are you there?"))
        urgent = await runtime.wait(await runtime.accept(outsider("fire")))

    assert person is not None
    assert urgent is not None
    assert (person.reply, urgent.reply) == ("yes", "at once")


async def test_what_a_person_caused_wakes_it_and_what_nobody_did_does_not():
    async with at_noon(Scripted(["begun", "done"]), ManualClock(NOON)) as runtime:
        said = await runtime.send("begin")
        await runtime.wait(said)
        more = {"kind": Kind.SUBAGENT_ANNOUNCE, "depth": 1}
        caused = operator_draft(MAIN, "result", root_id=said.stimulus_id, **more)
        turn = await runtime.wait(await runtime.accept(caused))
        stray = await runtime.accept(operator_draft(MAIN, "stray", root_id="st_gone", **more))

    assert turn is not None
    assert turn.reply == "done"
    assert (stray.outcome, stray.reason) == (Outcome.PARKED, "quiet-hours")


async def test_ticks_are_left_out():
    async with at_noon(paid([]), ManualClock(NOON)) as runtime:
        tick = operator_draft(
            MAIN, "tick", kind=Kind.TICK, priority=Priority.LATER, source="proactive"
        )
        by_itself = await runtime.accept(tick)

    assert (by_itself.outcome, by_itself.reason) == (Outcome.SUPPRESSED, "quiet-hours")


async def test_what_a_person_asks_for_by_hand_passes_and_clockwork_does_not():
    clock = ManualClock(NOON)
    nap = says("", call("sleep", duration_ms=3_600_000))
    async with at_noon(Scripted([nap, "woken", "HEARTBEAT_OK"]), clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        woken = await runtime.send("/wake")
        await wait_for(runtime, "turn.finished", lambda event: event.data["reply"] == "woken")
        asked = await runtime.send("/heartbeat now")
        clock.advance(1)
        turn = await wait_for(
            runtime, "turn.started", lambda event: event.data["origin"] == "heartbeat"
        )
        by_event = await runtime.services.heartbeats.ask("main")
        rows = await runtime.store.read(
            "SELECT kind, ignores_quiet_hours FROM stimuli WHERE kind <> 'user' ORDER BY id"
        )

    assert woken.reply is not None
    assert woken.reply.startswith("Woken after")
    assert asked.reply == "A heartbeat comes at once."
    assert turn.data["source"] == "heartbeat:operator"
    assert by_event.outcome is not Outcome.SUPPRESSED
    assert rows == [("wake", 1), ("heartbeat", 1), ("heartbeat", 1)]


async def test_a_wake_in_its_own_time_waits_for_the_end_of_the_quiet_hours():
    clock = ManualClock(NOON)
    nap = says("", call("sleep", duration_ms=60_000))
    async with at_noon(Scripted([nap, "woken"]), clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        clock.advance(120)
        refused = await wait_for(runtime, "stimulus.suppressed")
        clock.advance(90 * 60)
        woken = await wait_for(runtime, "sleep.woken")

    assert refused.data["reason"] == "quiet-hours"
    assert woken.data["slept_ms"] == 92 * 60_000


async def test_an_end_by_hand_wakes_whose_wake_was_put_off():
    clock = ManualClock(NOON)
    nap = says("", call("sleep", duration_ms=60_000))
    async with at_noon(Scripted([nap, "woken"]), clock) as runtime:
        await runtime.wait(await runtime.send("rest"))
        clock.advance(120)
        await wait_for(runtime, "stimulus.suppressed")
        await runtime.services.quiet_acts.set("main", None, "operator")
        woken = await wait_for(runtime, "sleep.woken")

    assert woken.data["slept_ms"] == 120_000


async def test_a_persons_own_job_passes():
    async with at_noon(Scripted(["done"]), ManualClock(NOON)) as runtime:
        job = operator_draft(
            MAIN, "report", kind=Kind.AUTOMATION, source="cron:daily", ignores_quiet_hours=True
        )
        turn = await runtime.wait(await runtime.accept(job))

    assert turn is not None
    assert turn.reply == "done"


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-06-01T23:30", "2026-06-02T05:00"),
        ("2026-03-28T22:30", "2026-03-29T05:00"),  # the clocks go forward meanwhile
        ("2026-10-24T21:30", "2026-10-25T06:00"),  # and back
    ],
)
def test_the_end_is_what_clocks_show(now: str, end: str):
    hours = DailyHours(start="22:00", end="07:00")
    berlin = ZoneInfo("Europe/Berlin")

    def ms(text: str) -> int:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)

    assert hours.cover(ms(now), berlin)
    assert hours.span(ms(now), berlin).end == ms(end)


def test_hours_that_no_clock_shows_are_refused():
    with pytest.raises(InvalidInput, match=r"quiet_hours\.start: must be a time from 00:00"):
        Agent(quiet_hours=DailyHours(start="25:00", end="07:00"))
