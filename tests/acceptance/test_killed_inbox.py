"""Kill the process while an agent reads its inbox: each item is read once, and none is lost."""

from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client, gather
from tests.proofs.process import Gone, Place, running
from tests.proofs.rig import HEARTBEAT
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing.checker.history import Database, read_postgres, read_sqlite
from wakeful.testing.checker.marks import marks_in
from wakeful.testing.checker.stimuli import READ
from wakeful.vocabulary.stimulus import State

ENV = {HEARTBEAT: "0"}
ITEM = {"kind": "inbox", "trust": "external", "source": "feed"}


async def found(place: Place) -> Database:
    if isinstance(place.address, Path):
        return read_sqlite(place.address)
    return await read_postgres(place.address)


async def left_and_read(place: Place, die: str) -> None:
    """Leave items of two tiers, then let two sessions read them, and die on the way."""
    client = Client(place)
    async with running(place, env=ENV) as rig:
        await gather(*(client.say(rig, "activity", **ITEM, priority=1 + n % 2) for n in range(6)))
        await rig.stop()
    try:
        async with running(place, env=ENV, options=("--die", die)) as rig:
            await gather(
                client.say(rig, "a", "check,act&put"),
                client.say(rig, "b", "look,check.later,act&tell"),
            )
            await rig.rest()
            await rig.stop()
    except Gone:
        pass
    await come_to_rest(place, client, env=ENV)
    async with running(place, env=ENV) as rig:
        await client.say(rig, "c", "check.later")
        await rig.rest()
        await rig.stop()


async def assert_read_once(place: Place) -> None:
    database = await found(place)
    items = [one for one in database.stimuli.values() if one.in_inbox]
    results = [set(marks_in(entry.body)) for entry in database.entries if READ in entry.body]
    marks = Counter(mark for result in results for mark in result)

    assert {one.state for one in items} == {State.MERGED}
    assert marks == Counter({mark: 1 for one in items for mark in marks_in(one.text)})
    assert len(items) == 6
    assert_kept(await judged(place))


@pytest.mark.parametrize("number", range(3, 9))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_is_read_around_a_kill_is_read_once(place: Place, when: str, number: int):
    """I21 as well: the models obey what they read, and act after the kill."""
    await left_and_read(place, f"{when}:{number}")

    await assert_read_once(place)


@pytest.mark.parametrize("die", ["before:5", "after:5"])
async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, die: str):
    place = Place(tmp_path, postgres_url)
    await left_and_read(place, die)

    await assert_read_once(place)
