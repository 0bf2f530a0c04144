"""The proof itself works: rig, client, checker and chaos, in a few seconds."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.children import ROOT, die_with_parent
from tests.proofs import chaos
from tests.proofs.client import OUT, Client, Load
from tests.proofs.process import Gone, Place, Refused, running
from tests.proofs.trial import come_to_rest, judged

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def checker(place: Place) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "wakeful.testing.checker", place.ledgers, place.address)
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def test_a_quiet_life_keeps_every_promise(place: Place) -> None:
    client = Client(place)
    async with running(place) as rig:
        await client.say(rig, "a", "look&look&act&put&tell,transient+look", route=OUT)
        await Load(client, 7).run(rig, 60)
        with pytest.raises(Refused):
            await rig.ask("send", draft={"session_key": "a", "text": "", "priority": 1})
        status = await rig.ask("status")
        await rig.rest()
        code = await rig.stop()

    report = await judged(place, must=("I7", "I11"))

    assert code == 0
    assert set(status) == {"waiting", "running", "ready", "deliveries", "timers"}
    assert not report.caught, report.table()
    assert checker(place).returncode == 0


async def test_the_checker_names_what_is_broken_and_tells_its_story(place: Place) -> None:
    client = Client(place)
    async with running(place, env={"WAKEFUL_MUTANT": "double_settle"}) as rig:
        await client.say(rig, "a", "look")
        await rig.rest()
        await rig.stop()

    told = checker(place)

    assert told.returncode == 1
    assert "I1 BROKEN" in told.stdout
    assert "stimulus.accepted" in told.stdout


async def test_a_history_without_facts_proves_nothing(place: Place) -> None:
    async with running(place) as rig:
        await rig.stop()

    report = await judged(place)

    assert {"I1", "I2", "I5"} <= report.caught


async def test_whoever_asks_a_dead_process_is_told_so(place: Place) -> None:
    client = Client(place)
    async with running(place) as rig:
        rig.kill()
        await rig.ended()
        with pytest.raises(Gone):
            await rig.rest()
        await client.say(rig, "a")

    await come_to_rest(place, client)

    assert not (await judged(place)).caught


async def test_chaos_writes_its_report(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.proofs.chaos", "--seed", "3", "--minutes", "0.01"),
        *("--lives", "6"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=die_with_parent,
    )
    out, _ = await process.communicate()

    assert process.returncode == 0, out.decode()
    report = msgspec.json.decode((tmp_path / chaos.REPORT).read_bytes(), type=chaos.ChaosReport)
    assert report.rounds == 1
    assert report.stimuli > 0
    assert set(report.violations.values()) == {0}
