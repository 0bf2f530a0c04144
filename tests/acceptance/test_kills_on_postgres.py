"""The same promises on PostgreSQL: kill the process, start it again, check."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept, killed_under_load, live_and_die
from tests.proofs.client import Client, Load, gather
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged

LITTLE = '{"money_per_day": 0.1, "turns_per_day": null, "money_per_chain": null}'


@pytest.fixture
def place(tmp_path: Path, postgres_url: str) -> Place:
    return Place(tmp_path, postgres_url)


@pytest.mark.parametrize(
    "point",
    [
        "accept",
        "accepted",
        "opened",
        "reply",
        "intended",
        "tool-acts",
        "result",
        "close",
        "closed",
        "sent",
    ],
)
async def test_nothing_is_lost_or_done_twice_when_killed_at_a_failpoint(
    place: Place, point: str
) -> None:
    client = Client(place)

    died = await live_and_die(place, client, fail=f"{point}:kill:2")
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    assert died
    assert report.crashes == 1
    assert_kept(report)


@pytest.mark.parametrize("where", ["before:12", "after:12", "before:27", "after:27"])
async def test_nothing_is_lost_when_killed_around_a_commit(place: Place, where: str) -> None:
    client = Client(place)

    await live_and_die(place, client, options=("--die", where))
    await come_to_rest(place, client)

    assert_kept(await judged(place))


async def test_no_money_is_spent_twice_when_killed_between_reserve_and_settle(
    place: Place,
) -> None:
    """F31: what a killed process had set aside is settled by the next."""
    client, env = Client(place), {"RIG_BUDGET": LITTLE}
    fail = {"WAKEFUL_FAIL": "close:kill:3"}

    with suppress(Gone):
        async with running(place, env={**env, **fail}) as rig:
            await gather(*(client.say(rig, f"r{lane}", "dear+say") for lane in range(20)))
            await rig.rest()
    await come_to_rest(place, client, env=env)

    report = await judged(place, must=("I13", "I15"))
    assert report.crashes == 1
    assert_kept(report)


async def test_random_kills_under_load_lose_nothing(place: Place) -> None:
    chance = random.Random(41)
    client = Client(place, 41)
    load = Load(client, 41)

    for _ in range(3):
        await killed_under_load(place, client, load, after=chance.randrange(1, 200))
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    assert report.crashes == 3
    assert_kept(report)
