"""Ask the real process to stop, politely and less politely; it never loses anything by it."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.patience import patience
from tests.proofs.client import OUT, Client, Load
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing.checker.history import Database, read_sqlite
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState

LANE = "agent:main:a"


def stored(place: Place) -> Database:
    return read_sqlite(place.home / "wakeful.db")


def only_turn(place: Place) -> TurnState:
    (turn,) = stored(place).turns.values()
    return turn.state


def only_turn_of(place: Place, session_key: str) -> TurnState:
    (turn,) = (t for t in stored(place).turns.values() if t.session_key == session_key)
    return turn.state


@pytest.mark.parametrize("seed", [21, 22, 23])
async def test_a_stop_at_a_random_time_under_load_is_clean(place: Place, seed: int) -> None:
    """F9: nothing is lost by stopping, whenever it comes."""
    chance = random.Random(seed)
    client = Client(place, seed)
    load = Load(client, seed)

    for _ in range(3):
        async with running(place) as rig, asyncio.TaskGroup() as group:
            group.create_task(client.come_back(rig))
            group.create_task(load.run(rig, 300))
            await client.has_sent(chance.randrange(1, 200))
            assert await rig.stop() == 0
    await come_to_rest(place, client)

    report = await judged(place)
    assert report.crashes == 0
    assert_kept(report)


async def test_the_first_signal_waits_for_running_turns_and_starts_no_other(place: Place) -> None:
    client = Client(place)
    async with running(place) as rig:
        await client.say(rig, "a", "act.gate=g", route=OUT)
        await rig.ask("reached", gate="g")

        rig.terminate()
        await client.say(rig, "b", "act")
        await rig.ask("open", gate="g")
        code = await rig.ended()

    states = {turn.session_key: turn.state for turn in stored(place).turns.values()}
    assert code == 0
    assert states == {LANE: TurnState.DONE}
    await come_to_rest(place, client)
    assert_kept(await judged(place))


async def test_the_second_signal_leaves_at_once_and_loses_nothing(place: Place) -> None:
    client = Client(place)
    async with running(place, options=("--drain-s", "60")) as rig:
        await client.say(rig, "a", "act.gate=g,put", route=OUT)
        await rig.ask("reached", gate="g")

        rig.terminate()
        await rig.ask("open_later", gate="g")
        rig.terminate()
        async with asyncio.timeout(patience(5)):
            code = await rig.ended()

    assert code == 0
    assert only_turn(place) is TurnState.OPEN
    await come_to_rest(place, client)
    report = await judged(place, must=("I7", "I11"))
    cut = next(call for call in stored(place).calls if call.name == "act")
    assert only_turn(place) is TurnState.DONE
    assert cut.state is CallState.UNKNOWN
    assert report.crashes == 0
    assert_kept(report)


async def test_what_is_not_done_when_the_patience_ends_goes_on_at_the_next_start(
    place: Place,
) -> None:
    client = Client(place)
    async with running(place, options=("--drain-s", "0.2")) as rig:
        await client.say(rig, "a", "look.gate=g", route=OUT)
        await rig.ask("reached", gate="g")
        await rig.ask("open_later", gate="g")
        code = await rig.stop()

    assert code == 0
    assert only_turn(place) is TurnState.OPEN
    await come_to_rest(place, client)
    assert only_turn(place) is TurnState.DONE
    assert_kept(await judged(place))


async def test_a_tool_that_stops_its_own_process_is_finished_first(place: Place) -> None:
    """F9: SIGTERM from inside a tool."""
    client = Client(place)
    async with running(place) as rig:
        await client.say(rig, "a", "act.term,put", route=OUT)
        code = await rig.ended()

    assert code == 0
    assert only_turn(place) is TurnState.DONE
    await come_to_rest(place, client)
    report = await judged(place, must=("I7",))
    assert report.crashes == 0
    assert_kept(report)


@pytest.mark.parametrize("plan", ["act.deaf", "look.deaf&look.deaf", "deaf+say"])
@pytest.mark.parametrize("signals", [1, 2])
async def test_what_does_not_hear_that_it_should_end_keeps_no_process_alive(
    place: Place, plan: str, signals: int
) -> None:
    client = Client(place)
    async with running(place, options=("--drain-s", "0.2" if signals == 1 else "60")) as rig:
        await client.say(rig, "a", plan, route=OUT)
        await rig.ask("reached", gate="deaf")
        for _ in range(signals):
            rig.terminate()
            await client.say(rig, "b", "act")  # one signal must be heard before the next
        async with asyncio.timeout(10):
            code = await rig.ended()

    assert code == 0
    await come_to_rest(place, client)
    report = await judged(place)
    assert only_turn_of(place, LANE) is TurnState.DONE
    assert report.crashes == 0
    assert_kept(report)


@pytest.mark.parametrize("plan", ["act.deaf", "slow+deaf+say"])
async def test_a_stop_ends_what_does_not_hear_it(place: Place, plan: str) -> None:
    client = Client(place)
    async with running(place) as rig:
        await client.say(rig, "a", plan, route=OUT)
        await rig.ask("reached", gate="deaf")
        await client.tell(rig, "stop", session=LANE)
        await client.say(rig, "a", "look")
        await rig.rest()
        assert await rig.stop() == 0

    report = await judged(place)
    states = sorted(turn.state for turn in stored(place).turns.values())
    assert states == [TurnState.DONE, TurnState.STOPPED]
    assert_kept(report)


async def test_stopped_and_halted_sessions_stay_so_over_a_kill(place: Place) -> None:
    client = Client(place)
    try:
        async with running(place) as rig:
            await client.say(rig, "a", "look.gate=g,look,look")
            await client.say(rig, "b", "look.gate=h,look")
            await rig.ask("reached", gate="g")
            await rig.ask("reached", gate="h")
            await client.tell(rig, "stop", session=LANE)
            await client.tell(rig, "halt")
            await client.say(rig, "c")
            await rig.ask("open", gate="h")
            rig.kill()
            await rig.rest()
    except Gone:
        pass

    async with running(place) as rig:
        await client.say(rig, "d")
        halted = await rig.ask("status")
        await client.tell(rig, "resume")
        await rig.rest()
        assert await rig.stop() == 0

    report = await judged(place, must=("I22",))
    assert halted["running"] == 0
    assert_kept(report)


async def test_a_second_process_on_the_same_home_is_refused(place: Place, tmp_path: Path) -> None:
    client = Client(place)
    async with running(place) as first:
        await client.say(first, "a")

        with pytest.raises(Gone):
            async with running(place):
                pass

        await first.rest()
        assert await first.stop() == 0
    assert "in use" in (place.ledgers / "stderr.log").read_text()
    assert_kept(await judged(place))
