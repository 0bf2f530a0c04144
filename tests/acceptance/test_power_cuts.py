"""Cut the power: what was not synced is gone, what was acknowledged is there."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.acceptance import lossy_disk
from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client, Load
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged


@pytest.mark.parametrize("seed", [31, 32, 33])
async def test_everything_acknowledged_survives_a_power_cut(
    place: Place, tmp_path: Path, seed: int
) -> None:
    """F10: what was not synced is gone, what was acknowledged is not."""
    chance = random.Random(seed)
    client = Client(place, seed)
    load = Load(client, seed)

    for number in range(3):
        durable = tmp_path / f"durable{number}"
        durable.mkdir()
        await lose_power(place, client, load, durable, after=chance.randrange(1, 200))
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    assert report.crashes == 3
    assert report.accepted > 20
    assert_kept(report)


async def test_a_build_that_does_not_sync_is_caught(place: Place, tmp_path: Path) -> None:
    client = Client(place)
    durable = tmp_path / "durable"
    durable.mkdir()
    mutant = "commits_not_synced"

    await lose_power(place, client, Load(client, 1), durable, after=60, mutant=mutant)
    await come_to_rest(place, client)

    report = await judged(place)
    assert "I2" in report.caught, report.table()


async def lose_power(
    place: Place, client: Client, load: Load, durable: Path, *, after: int, mutant: str = ""
) -> None:
    """Live under load for a while on a disk that forgets, then lose power."""
    program = (str(Path(lossy_disk.__file__)),)
    env = {lossy_disk.VARIABLE: str(durable), "WAKEFUL_MUTANT": mutant}
    try:
        async with running(place, env=env, program=program) as rig, asyncio.TaskGroup() as group:
            group.create_task(client.come_back(rig))
            group.create_task(load.run(rig, 300))
            await client.has_sent(after)
            rig.kill()
    except Gone:
        pass
    lossy_disk.cut_power(place.home, durable)
