"""A process that is killed while a provider answers (F4, over real HTTP)."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.children import Partner, partner
from tests.patience import patience
from wakeful.testing.providers.plan import PlannedCall, Step, Tokens
from wakeful.testing.providers.process import providers

pytestmark = pytest.mark.timeout(90)  # the library is loaded twice

SCRIPT = Path(__file__).with_name("provider_process.py")
PATIENCE_S = patience(40)


async def started(folder: Path, environ: Mapping[str, str], *words: str) -> Partner:
    return await partner(
        [str(SCRIPT), str(folder / "home"), *words],
        environ=environ,
        errors=folder / "process.stderr",
        has_libraries=True,
    )


async def test_a_turn_killed_in_the_middle_of_an_answer_is_asked_once_more(tmp_path: Path):
    """F4: one answer per step, every call with its result, every token counted once."""
    home = tmp_path / "home"
    with providers(tmp_path) as stand_in:
        environ = {**os.environ, **stand_in.environment}
        stand_in.plan(
            cut=[
                Step(text="", calls=(PlannedCall(name="current_time"),), tokens=Tokens(input=7)),
                Step(text="an answer that never ends", pieces=5, silence="middle"),
                Step(text="an answer", tokens=Tokens(input=11, output=3, cache_read=4)),
            ]
        )
        one = await started(tmp_path, environ, "{cut}")
        await stand_in.saw("silent", "cut", patience_s=PATIENCE_S)
        one.signal_all(signal.SIGKILL)
        await one.wait()
        two = await started(tmp_path, environ)
        async with asyncio.timeout(PATIENCE_S):
            assert await two.wait() == 0

        asked = stand_in.bodies("cut")
        answered = [line["tokens"] for line in stand_in.lines("answered", "cut")]
        assert stand_in.lines("refused") == []
    database = sqlite3.connect(home / "wakeful.db")
    asks = list(database.execute("SELECT step, state FROM asks ORDER BY step, attempt"))
    bodies = [json.loads(row[0]) for row in database.execute("SELECT body FROM entries")]
    ((read, written, reply),) = database.execute(
        "SELECT input_tokens, output_tokens, reply FROM turns"
    )
    database.close()

    assert asks == [(1, "answered"), (2, "abandoned"), (2, "answered")]
    assert len(asked) == 3
    assert asked[1]["messages"] == asked[2]["messages"]
    assert [body["type"] for body in bodies] == ["user", "assistant", "tool", "assistant"]
    assert reply == "an answer"
    assert read == sum(tokens["input"] for tokens in answered)
    assert written == sum(tokens["output"] for tokens in answered)
