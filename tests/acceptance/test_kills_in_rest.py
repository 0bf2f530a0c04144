"""Kill the process around the commits of a sleep, a wake, a tick and a beat: each goes on, once."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.rig import HEARTBEAT, TICKS
from tests.proofs.stand_in import NAP_MS
from tests.proofs.trial import judged
from wakeful.testing.checker.history import Database, read_postgres, read_sqlite
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.stimulus import TERMINAL

MAIN = "agent:main:main"
LANE = "agent:main:a"
TICKING = {TICKS: "1"}
BEATING = {HEARTBEAT: "1m"}
MINUTE_MS = 60_000


async def rows(place: Place) -> Database:
    if isinstance(place.address, Path):
        return read_sqlite(place.address)
    return await read_postgres(place.address)


async def tick_and_die(place: Place, die: str) -> Database:
    try:
        async with running(place, env=TICKING, options=("--die", die)) as rig:
            place.move_clock(MINUTE_MS + 1000)
            await rig.ask("seen", kind="turn.finished", count=2)  # one of each agent
            await rig.stop()
    except Gone:
        pass
    place.move_clock(3 * MINUTE_MS)
    async with running(place, env=TICKING) as rig:
        await rig.ask("seen", kind="turn.finished", count=2)
        await Client(place).say(rig, "a")
        await rig.rest()
        await rig.stop()
    return await rows(place)


def assert_ticks_on(found: Database) -> None:
    ticks = [
        one
        for one in found.stimuli.values()
        if one.origin is Origin.TICK and one.session_key == MAIN
    ]
    times = sorted(tick.accepted_at for tick in ticks)

    assert 1 <= len(ticks) <= 3
    assert all(tick.state in TERMINAL for tick in ticks)
    assert all(later - sooner >= MINUTE_MS for sooner, later in pairwise(times))
    assert {f"tick {MAIN}", "heartbeat main"} <= found.timers.keys()


async def beat_and_die(place: Place, die: str) -> Database:
    try:
        async with running(place, env=BEATING, options=("--die", die)) as rig:
            place.move_clock(MINUTE_MS + 1000)
            await rig.ask("seen", kind="heartbeat.skipped", count=2)  # one of each agent
            await rig.stop()
    except Gone:
        pass
    place.move_clock(3 * MINUTE_MS)
    async with running(place, env=BEATING) as rig:
        await rig.ask("seen", kind="heartbeat.skipped", count=2)
        await Client(place).say(rig, "a")
        await rig.rest()
        await rig.stop()
    return await rows(place)


def assert_in_step(found: Database) -> None:
    """Each heartbeat has its reason, none came twice, and the next is in step with the first."""
    beats = [one for one in found.stimuli.values() if one.origin is Origin.HEARTBEAT]
    fired = [event.data for event in found.events if event.kind == "timer.fired"]
    dues = [data["due_at"] for data in fired if data["timer_id"] == "heartbeat main"]

    assert 2 <= len(beats) <= 4
    assert {(one.state, one.state_reason) for one in beats} == {("suppressed", "nothing-to-do")}
    assert len(set(dues)) == len(dues) == len([one for one in beats if one.session_key == MAIN])
    assert {(found.timers["heartbeat main"] - due) % MINUTE_MS for due in dues} == {0}


async def sleep_and_die(place: Place, die: str) -> Database:
    client = Client(place)
    try:
        async with running(place, options=("--die", die)) as rig:
            await client.say(rig, "a", "nap")
            await rig.rest()
            place.move_clock(NAP_MS + 1000)
            await rig.ask("seen", kind="sleep.woken", count=1)
            await rig.rest()
            await rig.stop()
    except Gone:
        pass
    async with running(place) as rig:
        await client.come_back(rig)
        await rig.rest()
        place.move_clock(3 * NAP_MS)
        await rig.ask("seen", kind="sleep.woken", count=1)
        await rig.rest()
        await rig.stop()
    return await rows(place)


def assert_woken_once(found: Database) -> None:
    wakes = [one for one in found.stimuli.values() if one.origin is Origin.WAKE]
    woken = [event for event in found.events if event.kind == "sleep.woken"]

    assert [event.data["reason"] for event in woken] == ["timer"]
    assert [one.state for one in wakes] == ["done"]
    assert found.sleeps == {}


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", [10, 11, 12, 13])  # filed, opened, answered: 11, 12, 13
async def test_a_killed_tick_goes_on_and_the_next_one_comes(
    place: Place, number: int, where: str
) -> None:
    assert_ticks_on(await tick_and_die(place, f"{where}:{number}"))
    assert_kept(await judged(place))


@pytest.mark.parametrize("die", ["before:10", "after:10"])
async def test_a_killed_heartbeat_keeps_its_step(place: Place, die: str) -> None:
    assert_in_step(await beat_and_die(place, die))
    assert_kept(await judged(place, must=("I12",)))


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", [10, 12, 14])
async def test_a_killed_sleeper_wakes_once(place: Place, number: int, where: str) -> None:
    assert_woken_once(await sleep_and_die(place, f"{where}:{number}"))
    assert_kept(await judged(place, must=("I19",)))


@pytest.mark.parametrize("where", ["before:10", "after:10", "after:11", "after:12"])
async def test_a_killed_tick_goes_on_on_postgresql(
    tmp_path: Path, postgres_url: str, where: str
) -> None:
    place = Place(tmp_path, postgres_url)

    assert_ticks_on(await tick_and_die(place, where))
    assert_kept(await judged(place))


@pytest.mark.parametrize("where", ["before:11", "after:13"])
async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, where: str) -> None:
    place = Place(tmp_path, postgres_url)

    assert_woken_once(await sleep_and_die(place, where))
    assert_kept(await judged(place, must=("I19",)))
