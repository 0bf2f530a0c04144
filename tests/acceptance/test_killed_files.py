"""A process that dies with files under way loses none of them, and sends none of them twice."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.children import partner
from tests.patience import patience
from wakeful.vocabulary.failpoints import VARIABLE

SCRIPT = Path(__file__).with_name("files_process.py")
LIFE_S = patience(30)

# A holder that is gone, or a hash without its bytes.
STRAYS = """
SELECT holder FROM attachment_uses WHERE holder NOT IN (
    SELECT id FROM stimuli UNION SELECT id FROM entries UNION SELECT id FROM deliveries
) UNION SELECT hash FROM attachment_uses WHERE hash NOT IN (SELECT hash FROM attachments)
"""


async def live(home: Path, fail: str = "") -> int:
    errors = home.with_suffix(".stderr")
    process = await partner([str(SCRIPT), str(home)], environ={VARIABLE: fail}, errors=errors)
    try:
        async with asyncio.timeout(LIFE_S):
            return await process.wait()
    finally:
        process.signal_all(signal.SIGKILL)


@pytest.mark.parametrize("point", ["accepted", "intended", "tool-acts", "result", "sent"])
async def test_a_kill_loses_no_file_and_sends_none_twice(tmp_path: Path, point: str):
    home = tmp_path / "home"
    home.mkdir()

    died = await live(home, f"{point}:kill")
    lived = await live(home)

    assert (died != 0, lived) == (True, 0)
    got = [json.loads(line) for line in (home / "got.jsonl").read_text().splitlines()]
    sent = {tuple(one[:2]): one[2] for one in got}
    assert sorted((text, files) for (_, text), files in sent.items()) == [
        ("done", []),
        ("here", ["all is well"]),
    ]
    with closing(sqlite3.connect(home / "wakeful.db")) as database:
        assert database.execute(STRAYS).fetchall() == []
        assert database.execute("SELECT COUNT(*) FROM attachments").fetchone() == (2,)
        assert database.execute("SELECT COUNT(*) FROM stimuli").fetchone() == (1,)
        states = database.execute("SELECT state FROM tool_calls").fetchall()
    assert states == [("done",)]
