"""The process is killed while an MCP server acts for it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.children import talk
from tests.integration.tools.mcp_serving import lying
from tests.patience import patience
from tests.waiting import eventually_holds

PATIENCE_S = patience(30)
SCRIPT = Path(__file__).with_name("mcp_process.py")


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
    arguments = [str(SCRIPT), str(home), effect, *command]

    first = talk(arguments, environ=os.environ, has_libraries=True)
    eventually_holds(lambda: marks.read_text().endswith("\n"))
    server = int(marks.read_text())
    first.kill()
    first.communicate()
    eventually_holds(lambda: is_gone(server))
    second = talk(arguments, environ=os.environ, has_libraries=True)
    told, errors = second.communicate(timeout=PATIENCE_S)

    assert (told.strip(), second.returncode) == (said, 0), errors
    assert len(marks.read_text().split()) == (1 if effect == "effect" else 2)
    with closing(sqlite3.connect(home / "wakeful.db")) as database:
        assert database.execute("SELECT name, state FROM tool_calls").fetchall() == [
            ("n_mark", state)
        ]
