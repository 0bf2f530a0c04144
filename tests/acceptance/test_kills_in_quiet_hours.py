"""Kill the process around the commits of the end of quiet hours: everything goes on, once."""

from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import judged
from wakeful.testing.checker.history import Database, read_postgres, read_sqlite

HOUR_MS = 3_600_000
LATER = {"kind": "webhook", "source": "alarm", "trust": "external"}
HELD = {"kind": "inbox", "source": "backup", "trust": "external"}
ACTIVITY = "agent:main:activity"


async def spend_a_night(place: Place, client: Client) -> None:
    """Leave something parked in two sessions, and something held."""
    async with running(place) as rig:
        await rig.ask("quiet", for_ms=HOUR_MS)
        for session in ("a", "a", "b"):
            await client.say(rig, session, **LATER)
        for _ in range(2):
            await client.say(rig, "activity", **HELD)
        await rig.rest()
        await rig.stop()
    place.move_clock(HOUR_MS + 60_000)


async def wake_and_die(place: Place, die: str) -> Database:
    client = Client(place)
    await spend_a_night(place, client)
    try:
        async with running(place, options=("--die", die)) as rig:
            await rig.ask("seen", kind="turn.finished", count=3)
            await rig.rest()
            await rig.stop()
    except Gone:
        pass
    async with running(place) as rig:
        await rig.ask("seen", kind="turn.finished", count=3)  # of all lives
        await rig.rest()
        await rig.stop()
    if isinstance(place.address, Path):
        return read_sqlite(place.address)
    return await read_postgres(place.address)


def assert_ended_once(found: Database) -> None:
    rows = list(found.stimuli.values())
    digests = [one for one in rows if one.source == "quiet-hours"]
    ended = {(one.session_key, one.turn_id) for one in rows if one.source == "alarm"}
    held = [one for one in rows if one.source == "backup"]

    assert [(one.session_key, one.state) for one in digests] == [(ACTIVITY, "done")]
    assert sorted(key for key, _ in ended) == ["agent:main:a", "agent:main:b"]
    assert {one.state for one in rows if one.source == "alarm"} <= {"done", "merged"}
    assert [(one.state, one.turn_id) for one in held] == [("merged", digests[0].turn_id)] * 2
    assert "quiet main" not in found.timers


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
async def test_a_killed_end_of_quiet_hours_goes_on_and_is_told_once(
    place: Place, number: int, where: str
) -> None:
    assert_ended_once(await wake_and_die(place, f"{where}:{number}"))
    assert_kept(await judged(place))


@pytest.mark.parametrize("where", ["before:3", "after:3"])
async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, where: str) -> None:
    place = Place(tmp_path, postgres_url)

    assert_ended_once(await wake_and_die(place, where))
    assert_kept(await judged(place))


@pytest.mark.parametrize("how", ["failed", "preempted"])
async def test_what_a_broken_off_digest_was_given_is_there_for_the_next_turn(
    place: Place, how: str
) -> None:
    client = Client(place)
    plan = "refuse+say" if how == "failed" else "gate=digest+say"
    async with running(place) as rig:
        await rig.ask("quiet", for_ms=HOUR_MS)
        await client.say(rig, "activity", plan, **HELD)
        await rig.rest()
        await rig.ask("quiet", for_ms=None)
        if how == "preempted":
            await rig.ask("reached", gate="digest")
        else:
            await rig.ask("seen", kind="turn.finished", count=1)
        await client.say(rig, "activity", priority=0)
        await rig.ask("open", gate="digest")
        await rig.ask("seen", kind="turn.finished", count=2)
        await rig.rest()
        await rig.stop()
    assert isinstance(place.address, Path)
    found = read_sqlite(place.address)
    (held,) = [one for one in found.stimuli.values() if one.source == "backup"]

    assert held.state == "merged"
    assert held.turn_id is not None
    assert found.turns[held.turn_id].state == how
    assert_kept(await judged(place))
