"""Move the wall clock of the real process, or suspend it; timers keep their word."""

import asyncio

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import OUT, Client, gather
from tests.proofs.process import Place, running
from tests.proofs.rig import HEARTBEAT
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing.checker.history import Database, read_sqlite
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.stimulus import State

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
SOON_MS = 1_000
LANE = "agent:main:a"
STILL = {HEARTBEAT: "0"}  # nobody wakes by itself


def stored(place: Place) -> Database:
    return read_sqlite(place.home / "wakeful.db")


@pytest.mark.parametrize("jump_ms", [2 * HOUR_MS, YEAR_MS])
async def test_a_jump_ahead_fires_what_it_passes_once_and_ends_no_turn(
    place: Place, jump_ms: int
) -> None:
    """F15: late, once, and with its lateness."""
    client = Client(place)
    async with running(place, env=STILL) as rig:
        await client.say(rig, "a", "look.gate=g,transient+act", route=OUT)
        await client.say(rig, "a", "put", mode="queue", route=OUT)
        await client.set_timer(rig, "b", HOUR_MS)
        await client.set_timer(rig, "a", HOUR_MS)
        await client.set_timer(rig, "c", 2 * YEAR_MS)
        await rig.ask("reached", gate="g")

        place.move_clock(jump_ms)
        fired = await rig.ask("seen", kind="timer.fired", count=2)
        await rig.ask("open", gate="g")
        await rig.rest()
        place.move_clock(0)
        await client.say(rig, "a", "look", route=OUT)
        await rig.rest()
        assert await rig.stop() == 0

    states = {turn.state for turn in stored(place).turns.values()}
    assert all(abs(one["late_ms"] - (jump_ms - HOUR_MS)) < 60_000 for one in fired)
    assert states == {TurnState.DONE}
    assert len(stored(place).timers) == 1
    assert_kept(await judged(place, must=("I7", "I11", "I12")))


async def test_a_jump_back_holds_up_no_turn_and_fires_nothing_early(place: Place) -> None:
    """F15: neither early nor twice."""
    client = Client(place)
    async with running(place, env=STILL) as rig:
        await client.say(rig, "a", "look.gate=g,transient+act", route=OUT)
        await client.say(rig, "a", "put", mode="queue", route=OUT)
        await client.say(rig, "d", route={"door": "chatty", "address": "somebody"})
        await client.set_timer(rig, "b", SOON_MS)
        await rig.ask("reached", gate="g")

        place.move_clock(-HOUR_MS)
        await rig.ask("open", gate="g")
        await rig.rest()
        early = stored(place)
        place.move_clock(0)
        (fired,) = await rig.ask("seen", kind="timer.fired", count=1)
        await rig.rest()
        assert await rig.stop() == 0

    assert {turn.state for turn in early.turns.values()} == {TurnState.DONE}
    assert {turn.session_key for turn in early.turns.values()} == {LANE, "agent:main:d"}
    assert len(early.timers) == 1
    assert fired["late_ms"] >= 0
    assert_kept(await judged(place, must=("I7", "I11", "I12")))


async def test_a_clock_moved_back_while_nobody_ran_holds_up_nothing(place: Place) -> None:
    client = Client(place)
    place.move_clock(HOUR_MS)
    async with running(place, env=STILL, options=("--drain-s", "0")) as rig:
        await client.say(rig, "b", route=OUT)
        await rig.ask("seen", kind="delivery.acknowledged", count=1)
        await client.say(rig, "a", "look.gate=g,act", route=OUT)
        await client.say(rig, "a", "put", mode="queue", route=OUT)
        await rig.ask("reached", gate="g")
        await rig.ask("open_later", gate="g")
        await rig.stop()
    place.move_clock(0)

    await come_to_rest(place, client)

    assert [stimulus.state for stimulus in stored(place).stimuli.values()] == [State.DONE] * 3
    assert_kept(await judged(place, must=("I7", "I11")))


async def test_after_a_suspend_each_timer_fires_once_and_a_noisy_one_is_held(place: Place) -> None:
    """F16: what was due meanwhile comes by policy, not as a burst."""
    client = Client(place)
    async with running(place, env=STILL, options=("--watchdog-s", "1")) as rig:
        for hour in range(1, 8):
            await client.say(rig, f"quiet{hour}")
            await client.set_timer(rig, f"quiet{hour}", hour * HOUR_MS)
        await gather(
            *(
                client.set_timer(rig, "noisy", HOUR_MS, kind="webhook", source="feed")
                for _ in range(12)
            )
        )
        await client.say(rig, "a", "look.gate=g,act")
        await rig.ask("reached", gate="g")

        rig.suspend()
        place.move_clock(8 * HOUR_MS)
        await asyncio.sleep(2.5)  # longer than the watchdog's patience: nobody may count it
        rig.wake()
        fired = await rig.ask("seen", kind="timer.fired", count=19)
        await rig.ask("open", gate="g")
        await rig.rest()
        assert await rig.stop() == 0

    found = stored(place)
    noisy = [one.state for one in found.stimuli.values() if one.source == "feed"]
    assert sorted(noisy) == [State.DONE] * 8 + [State.HELD] * 4
    assert {turn.state for turn in found.turns.values()} == {TurnState.DONE}
    assert all(one["late_ms"] >= HOUR_MS / 2 for one in fired)
    assert not found.timers
    assert_kept(await judged(place, must=("I7", "I12")))
