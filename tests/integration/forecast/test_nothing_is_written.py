"""A forecast looks: not a byte of the database is another one afterwards."""

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from tests.integration.forecast.life import PATIENT, AssumedModel, Life
from tests.waiting import eventually
from wakeful.cli.offline import offline
from wakeful.settings.load import load
from wakeful.settings.purpose import SettingsPurpose
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.proactive import ProactiveRules

RULES = ProactiveRules(enabled=True, tick_interval_secs=3_600)
FILE = """
timezone: Europe/Berlin
models: {"openai:my-model": {input: 1.0, output: 4.0, max_output: 8192}}
agents: {main: {model: "openai:my-model", proactive: {enabled: true, tick_interval_secs: 3600}}}
"""


def a_life(home: Path | None = None) -> Life:
    model = AssumedModel()
    agent = Agent(model=model, limits=PATIENT, proactive=RULES)
    settings = Settings(timezone="Europe/Berlin", home=home)
    return Life([agent], settings, ManualClock(), model)


def fingerprints(home: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in home.iterdir()
        if file.name.startswith("wakeful.db")
    }


async def test_a_running_database_is_the_same_to_the_byte(tmp_path: Path) -> None:
    life = a_life(tmp_path)
    async with life.runtime as runtime:
        await life.begin()
        before, log = await runtime.cursor(), tmp_path / "wakeful.db-wal"
        await eventually(lambda: log.stat().st_size == 0)  # what was written is copied back
        content = (tmp_path / "wakeful.db").read_bytes()

        forecast = await runtime.forecast()

        assert forecast.rows
        assert log.stat().st_size == 0
        assert (tmp_path / "wakeful.db").read_bytes() == content
        assert await runtime.cursor() == before


async def test_without_a_server_it_says_the_same_and_leaves_no_file(tmp_path: Path) -> None:
    life = a_life(tmp_path)
    async with life.runtime as runtime:
        await life.begin()
        told = await runtime.forecast(2)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    before = fingerprints(tmp_path)

    environ = {"WAKEFUL_HOME": str(tmp_path)}  # and no key of any provider
    loaded = load(None, environ, SettingsPurpose.LOOK)
    reader = offline(loaded, tmp_path / "wakeful.db", life.clock)
    said = await asyncio.to_thread(lambda: reader.get("/api/forecast", days=2))

    assert fingerprints(tmp_path) == before
    assert not (tmp_path / "wakeful.db-wal").exists()
    assert [(row["source"], row["fires"]) for row in said["rows"]] == [
        (row.source, row.fires) for row in told.rows
    ]


@pytest.mark.parametrize("days", [0, -1, 32])
async def test_how_far_it_looks_is_bounded(days: int) -> None:
    async with a_life().runtime as runtime:
        with pytest.raises(InvalidInput, match="days"):
            await runtime.forecast(days)


async def test_nobody_is_foretold_who_is_not_there() -> None:
    async with a_life().runtime as runtime:
        with pytest.raises(NotFound, match="nobody"):
            await runtime.forecast(1, agent="nobody")


async def test_the_settings_count_that_hold_now() -> None:
    life = a_life()
    async with life.runtime as runtime:
        await life.begin()
        model = life.model
        calm = Agent(model=model, limits=PATIENT, proactive=ProactiveRules())
        before = await runtime.forecast(1)
        await runtime.reconfigure(agents=[calm])

        after = await runtime.forecast(1)

        assert "tick" in {row.source for row in before.rows}
        assert "tick" not in {row.source for row in after.rows}
        assert msgspec.json.encode(before) != msgspec.json.encode(after)
