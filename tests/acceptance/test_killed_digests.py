"""Kill the process around the commits of a digest: what was held back leaves, and leaves once."""

from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import OUT, Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.rig import HEARTBEAT, THROTTLE
from tests.proofs.trial import judged
from wakeful.outbox.outbox import Delivery, DeliveryState
from wakeful.testing.checker.history import read_postgres, read_sqlite
from wakeful.vocabulary.failpoints import VARIABLE

ENV = {THROTTLE: "1", HEARTBEAT: "0"}
HOUR_MS = 3_600_000


async def deliveries(place: Place) -> list[Delivery]:
    if isinstance(place.address, Path):
        return list(read_sqlite(place.address).deliveries.values())
    return list((await read_postgres(place.address)).deliveries.values())


async def hold_back(place: Place) -> None:
    """Let an agent say three things that nobody asked for: two of them wait."""
    client = Client(place)
    async with running(place, env=ENV) as rig:
        await client.say(rig, "a")
        for _ in range(3):
            await client.say(rig, "a", kind="callback", route=OUT)
            await rig.rest()
        await rig.stop()
    states = [one.state for one in await deliveries(place)]
    assert states == [DeliveryState.ACKNOWLEDGED, DeliveryState.HELD, DeliveryState.HELD]


async def let_go(place: Place, *, die: str = "", fail: str = "") -> None:
    """Let the hour pass, die around the digest, and live on."""
    place.move_clock(HOUR_MS + 1000)
    options = ("--die", die) if die else ()
    try:
        async with running(place, env={**ENV, VARIABLE: fail}, options=options) as rig:
            await rig.ask("seen", kind="delivery.acknowledged", count=4)
            await rig.stop()
    except Gone:
        pass
    else:
        assert not fail, "it should have died"
    async with running(place, env=ENV) as rig:
        await rig.ask("seen", kind="delivery.acknowledged", count=4)
        await rig.rest()
        await rig.stop()


def assert_left_once(found: list[Delivery]) -> None:
    digests = [one for one in found if one.parts]
    parts = [one for one in found if one.sent_with is not None]

    assert [one.parts for one in digests] == [2]
    assert {one.sent_with for one in parts} == {digests[0].id}
    assert {one.state for one in found} == {DeliveryState.ACKNOWLEDGED}
    assert all(one.text in digests[0].text for one in parts)


@pytest.mark.parametrize("die", ["before:4", "after:4", "before:5", "after:5"])
async def test_a_digest_killed_at_a_commit_leaves_once(place: Place, die: str) -> None:
    await hold_back(place)
    await let_go(place, die=die)

    assert_left_once(await deliveries(place))
    assert_kept(await judged(place))


@pytest.mark.parametrize("fail", ["send:kill", "sent:kill"])
async def test_a_digest_killed_around_its_sending_keeps_its_id(place: Place, fail: str) -> None:
    await hold_back(place)
    await let_go(place, fail=fail)

    assert_left_once(await deliveries(place))
    assert_kept(await judged(place))


async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    place = Place(tmp_path, postgres_url)
    await hold_back(place)
    await let_go(place, fail="sent:kill")

    assert_left_once(await deliveries(place))
    assert_kept(await judged(place))
