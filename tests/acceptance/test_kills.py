"""Kill the real process wherever it may be, start it again, and check every promise."""

from pathlib import Path

import pytest

from wakeful.testing.checker.check import Report
from wakeful.testing.client import OUT, Client, gather
from wakeful.testing.process import Gone, Place, RigProcess, running
from wakeful.testing.trial import come_to_rest, judged

POINTS = [f"P{number}" for number in range(1, 14)]
PASSAGES = [1, 3]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def scene(rig: RigProcess, client: Client) -> None:
    """Pass every failpoint several times: replies, all kinds of tools, deliveries, steers."""
    await client.say(rig, "a", "look&look&act&put&tell&look", route=OUT)
    await gather(
        client.say(rig, "a", "put,look", route=OUT),
        client.say(rig, "b", "act,put,tell", route=OUT),
        client.say(rig, "c", "", route=OUT),
        client.say(rig, "d", "look,act", mode="queue"),
        client.say(rig, "d", "slow+act", mode="queue"),
        client.say(rig, "a", "", priority=0, route=OUT),
    )
    await rig.rest()


def assert_kept(report: Report) -> None:
    assert not report.caught, report.table()


async def live_and_die(
    place: Place, client: Client, *, fail: str = "", options: tuple[str, ...] = ()
) -> bool:
    """Play the scene with a failure armed; return whether the process died of it."""
    try:
        async with running(place, env={"WAKEFUL_FAIL": fail}, options=options) as rig:
            await scene(rig, client)
            return await rig.stop() != 0
    except Gone:
        return True


@pytest.mark.parametrize("passage", PASSAGES)
@pytest.mark.parametrize("point", POINTS)
async def test_nothing_is_lost_or_done_twice_when_killed_at_a_failpoint(
    place: Place, point: str, passage: int
) -> None:
    client = Client(place)

    died = await live_and_die(place, client, fail=f"{point}:kill:{passage}")
    await come_to_rest(place, client)

    report = judged(place, must=("I7", "I11"))
    assert died, f"{point} was not passed {passage} times"
    assert report.crashes == 1
    assert_kept(report)
