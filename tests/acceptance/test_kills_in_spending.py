"""Kill the process while many want the last of the money: what is paid stays within the cap."""

from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client, gather
from tests.proofs.process import Gone, Place, running
from tests.proofs.rig import BUDGET
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger

LANES = 20
CAP = 100_000_000  # in billionths of a dollar
LITTLE = {BUDGET: '{"money_per_day": 0.1, "turns_per_day": null, "money_per_chain": null}'}


async def crowd_and_die(place: Place, fail: str) -> None:
    """Let twenty lanes want money that is enough for five, and kill whoever gives it out."""
    client = Client(place)
    try:
        async with running(place, env={**LITTLE, "WAKEFUL_FAIL": fail}) as rig:
            await client.say(rig, "first")
            await rig.rest()
            await gather(*(client.say(rig, f"r{number}", "dear+say") for number in range(LANES)))
            await rig.rest()
            await rig.stop()
    except Gone:
        pass
    await come_to_rest(place, client, env=LITTLE)


def assert_within(place: Place) -> None:
    """What the model was really paid, by its own ledger, and that it was killed at all."""
    lines = ledger.read(place.ledgers / "model.jsonl")
    lives = ledger.read(place.ledgers / "lives.jsonl")
    paid = sum(int(line.get("cost", 0)) for line in lines)

    assert 0 < paid <= CAP
    assert sum(line["what"] == "start" for line in lives) > sum(
        line["what"] == "stop" for line in lives
    )


# With money set aside for a question, and with its answer there.
@pytest.mark.parametrize("fail", ["opened:kill:3", "close:kill:3"])
async def test_a_kill_between_reserve_and_settle_gives_no_money_back(
    place: Place, fail: str
) -> None:
    await crowd_and_die(place, fail)

    assert_within(place)
    assert_kept(await judged(place, must=("I13", "I15")))


async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    place = Place(tmp_path, postgres_url)

    await crowd_and_die(place, "close:kill:3")

    assert_within(place)
    assert_kept(await judged(place, must=("I13", "I15")))
