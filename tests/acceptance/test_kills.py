"""Kill the real process wherever it may be, start it again, and check every promise."""

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept, killed_under_load, live_and_die
from tests.proofs.client import Client, Load, gather
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing.checker.history import History, read_ledgers, read_sqlite
from wakeful.vocabulary.stimulus import State

HOUR_MS = 3_600_000
POINTS = [
    *("accept", "accepted", "claim", "opened", "ask", "reply", "intended", "tool-acts", "result"),
    *("close", "closed", "send", "sent"),
]


@pytest.mark.parametrize("passage", [1, 3])
@pytest.mark.parametrize("point", POINTS)
async def test_nothing_is_lost_or_done_twice_when_killed_at_a_failpoint(
    place: Place, point: str, passage: int
) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F8: killed at each point of a turn, every promise holds."""
    client = Client(place)

    died = await live_and_die(place, client, fail=f"{point}:kill:{passage}")
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    assert died, f"{point} was not passed {passage} times"
    assert report.crashes == 1
    assert_kept(report)


@pytest.mark.parametrize("point", POINTS)
async def test_an_error_at_a_failpoint_leaves_nothing_behind(place: Place, point: str) -> None:
    client = Client(place)

    await live_and_die(place, client, fail=f"{point}:raise:2")
    await come_to_rest(place, client)

    assert_kept(await judged(place))


@pytest.mark.parametrize("point", ["accepted", "ask", "tool-acts", "sent"])
async def test_a_process_that_hangs_may_be_killed(place: Place, point: str) -> None:
    client = Client(place)

    hung = await live_and_die(place, client, fail=f"{point}:hang:2", patience_s=1.0)
    await come_to_rest(place, client)

    assert hung
    assert_kept(await judged(place))


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", range(9, 54, 4))  # those before make the database
async def test_nothing_is_lost_when_killed_around_a_commit(
    place: Place, number: int, where: str
) -> None:
    client = Client(place)

    await live_and_die(place, client, options=("--die", f"{where}:{number}"))
    await come_to_rest(place, client)

    assert_kept(await judged(place))


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", [4, 5])  # timers fire in the fourth
async def test_timers_fire_once_whatever_commit_the_process_dies_at(
    place: Place, number: int, where: str
) -> None:
    client = Client(place)
    async with running(place) as rig:
        await gather(*(client.say(rig, session) for session in "abc"))
        await rig.rest()
        for session in "aabc":
            await client.set_timer(rig, session, HOUR_MS, "act,put")
        assert await rig.stop() == 0
    place.move_clock(HOUR_MS)
    with suppress(Gone):
        async with running(place, options=("--die", f"{where}:{number}")) as rig:
            await rig.ask("seen", kind="timer.fired", count=4)
            await rig.rest()
    async with running(place) as rig:
        await rig.ask("seen", kind="timer.fired", count=4)
        await rig.rest()
        assert await rig.stop() == 0

    report = await judged(place, must=("I12",))
    assert report.crashes == 1
    assert_kept(report)


@pytest.mark.parametrize("seed", [11, 12, 13])
async def test_random_kills_under_load_lose_nothing(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    client = Client(place, seed)
    load = Load(client, seed)

    for _ in range(4):
        await killed_under_load(place, client, load, after=chance.randrange(1, 250))
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    assert report.crashes == 4
    assert report.accepted > 50
    assert_kept(report)


async def test_a_poisonous_stimulus_is_given_up_and_the_lane_goes_on(place: Place) -> None:
    """F32: a crash loop ends, visibly."""
    client = Client(place)
    try:
        async with running(place) as rig:
            await client.say(rig, "a", "poison+say")
            await client.say(rig, "a", mode="queue")
            await rig.rest()
    except Gone:
        pass

    await come_to_rest(place, client)

    report = await judged(place)
    history = History(read_sqlite(place.home / "wakeful.db"), read_ledgers(place.ledgers))
    first, second = history.db.stimuli.values()
    assert (first.state, first.state_reason) == (State.FAILED, "poisoned")
    assert second.state is State.DONE
    assert report.crashes == 3
    assert_kept(report)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("number", [8, 12, 17, 23, 30])
async def test_nothing_is_lost_when_killed_at_a_sync_of_the_disk(
    place: Place, number: int, tmp_path: Path
) -> None:
    """F1: at every sync, seen from outside the process."""
    client = Client(place)
    wrap = (
        *("strace", "-f", "-qq", "-o", str(tmp_path / "strace.log"), "-e", "trace=fdatasync"),
        *("-P", str(place.home / "wakeful.db-wal"), "-P", str(place.home / "wakeful.db")),
        *("-e", f"inject=fdatasync:signal=KILL:when={number}"),
    )

    died = await live_and_die(place, client, wrap=wrap)
    await come_to_rest(place, client)

    assert died
    assert_kept(await judged(place))
