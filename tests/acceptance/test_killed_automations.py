"""Kill the process around every commit of a run: one row for each instant, one turn, one end."""

from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import judged
from wakeful.testing.checker.history import Database, read_postgres, read_sqlite
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.automation import RunState
from wakeful.vocabulary.kinds import Limit

MAIN = "agent:main:main"
MUST = ("I12",)


async def run_and_die(place: Place, *, die: str = "", fail: str = "") -> Database:
    """Let a job fall due in `main` and one apart, and die of it; return what is there at rest."""
    client = Client(place)
    async with running(place) as rig:
        await client.say(rig, "main")
        await client.schedule(rig, "main", "act")
        await client.schedule(rig, None, "look")
        await rig.rest()
        await rig.stop()
    place.move_clock(3_600_000)
    options = ("--die", die) if die else ()
    try:
        async with running(place, env={"WAKEFUL_FAIL": fail}, options=options) as rig:
            await rig.ask("seen", kind="automation.ok", count=2)
            await rig.rest()
            await rig.stop()
    except Gone:
        pass
    async with running(place) as rig:
        await rig.ask("seen", kind="automation.ok", count=2)  # of all lives
        await rig.rest()
        await rig.stop()
    if place.database == "sqlite":
        return read_sqlite(place.home / "wakeful.db")
    return await read_postgres(place.database)


def assert_each_ran_once(found: Database) -> None:
    runs = list(found.runs.values())
    turns = [
        turn.opened_by
        for turn in found.turns.values()
        if turn.kind.rule.limit is Limit.JOB and turn.state is not TurnState.PREEMPTED
    ]
    posts = [one for one in found.stimuli.values() if one.kind == "system.post"]

    assert len({(run.job_id, run.scheduled_at) for run in runs}) == len(runs) == 2
    assert {run.state for run in runs} == {RunState.OK}
    assert sorted(turns) == sorted(run.stimulus_id or "" for run in runs)
    assert [(one.session_key, one.state) for one in posts] == [(MAIN, "done")]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7])
async def test_a_killed_run_goes_on_and_is_filed_and_told_once(
    place: Place, number: int, where: str
) -> None:
    assert_each_ran_once(await run_and_die(place, die=f"{where}:{number}"))
    assert_kept(await judged(place, must=MUST))


@pytest.mark.parametrize("point", ["opened", "ask", "close", "closed"])
async def test_a_run_killed_at_a_point_of_its_turn_goes_on_and_ends_once(
    place: Place, point: str
) -> None:
    assert_each_ran_once(await run_and_die(place, fail=f"{point}:kill"))
    assert_kept(await judged(place, must=MUST))


@pytest.mark.parametrize("die", ["before:2", "after:2", "after:4"])
async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, die: str) -> None:
    place = Place(tmp_path, postgres_url)

    assert_each_ran_once(await run_and_die(place, die=die))
    assert_kept(await judged(place, must=MUST))
