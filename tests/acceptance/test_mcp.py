"""The process is killed while an MCP server acts for it."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.tools.mcp_serving import lying

PATIENCE_S = 30.0
SCRIPT = Path(__file__).with_name("mcp_process.py")


def eventually(look: Callable[[], bool]) -> None:
    """Return once something holds that no event tells of."""
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_gone(process_id: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return True


@pytest.mark.parametrize(
    ("effect", "state", "said"),
    [
        ("effect", "unknown", "I saw: interrupted, outcome unknown: n_mark"),
        ("read", "done", "I saw: fine"),
    ],
)
def test_a_call_cut_off_by_a_kill_is_repeated_only_if_that_does_no_harm(
    tmp_path: Path, effect: str, state: str, said: str
):
    home, marks = tmp_path / "a home", tmp_path / "marks"
    home.mkdir()
    marks.touch()
    command = lying("mark", file=str(marks))
    argv = [sys.executable, str(SCRIPT), str(home), effect, *command]

    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as first:
        eventually(lambda: marks.read_text().endswith("\n"))
        server = int(marks.read_text())
        first.kill()
    eventually(lambda: is_gone(server))
    second = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)

    assert second.stdout.strip() == said
    assert len(marks.read_text().split()) == (1 if effect == "effect" else 2)
    with closing(sqlite3.connect(home / "wakeful.db")) as database:
        assert database.execute("SELECT name, state FROM tool_calls").fetchall() == [
            ("n_mark", state)
        ]
