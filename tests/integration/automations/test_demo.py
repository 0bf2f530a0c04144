"""The demo makes appointments and keeps them, so that everything can be tried without a key."""

import pytest

from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, wait_for
from wakeful.turn.agent import Agent


def running(clock: ManualClock) -> Runtime:
    agent = Agent(model="demo", heartbeat=NO_HEARTBEAT)
    return Runtime(agents=[agent], clock=clock, settings=Settings(timezone="Europe/Berlin"))


async def test_what_it_is_told_to_remember_in_a_while_it_says_when_it_is_due():
    clock = ManualClock()
    async with running(clock) as runtime:
        made = await runtime.ask("remind me in 2 minutes to stretch")
        clock.advance(121)
        done = await wait_for(runtime, "automation.ok")
        turn = await runtime.wait(str(done.turn_id))

    assert made == "Scheduled: stretch. next at 2027-01-15T09:02:00+01:00."
    assert turn is not None
    assert turn.reply == "It is time: stretch"


@pytest.mark.parametrize(
    ("said", "schedule"),
    [
        ("remind me every 30 minutes to drink", '{"kind":"every","every_s":1800,'),
        ("remind me every hour to drink", '{"kind":"every","every_s":3600,'),
        ("remind me every day at 9 to drink", '"expr":"0 9 * * *"'),
        ("remind me every weekday at 5:30 pm to drink", '"expr":"30 17 * * 1-5"'),
    ],
)
async def test_it_reads_when(said: str, schedule: str):
    async with running(ManualClock()) as runtime:
        await runtime.ask(said)
        ((kept,),) = await runtime.store.read("SELECT schedule FROM automations")

    assert schedule in kept


async def test_it_lists_and_cancels_what_it_scheduled():
    async with running(ManualClock()) as runtime:
        nothing = await runtime.ask("what is scheduled?")
        await runtime.ask("remind me every 2 hours to stretch")
        listed = await runtime.ask("what is scheduled?")
        await runtime.ask("cancel the reminder stretch")
        left = await runtime.store.read("SELECT id FROM automations")

    assert nothing.startswith("Nothing is scheduled here.")
    assert listed == (
        "Scheduled in this conversation:\n- stretch: next at 2027-01-15T11:00:00+01:00"
    )
    assert list(left) == []


async def test_what_is_no_time_is_not_scheduled():
    async with running(ManualClock()) as runtime:
        said = await runtime.ask("remind me in 2 fortnights to stretch")
        left = await runtime.store.read("SELECT id FROM automations")

    assert said.startswith("I do not understand that")
    assert list(left) == []
