"""Every example runs as a newcomer would run it, and says what it should."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patience

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
LONGEST = 60  # lines

SAYS = {
    "01_hello.py": ["accepted: started", "with 1 tool call in 2 steps", "transcript: 6 entries"],
    "02_tool.py": ["Two teas are on their way. We have no gold.", "ordered 2 x tea for 6"],
    "03_streaming_and_steering.py": [
        "second message: steered",
        "turn.delta     Let me look around.",
        "one turn for both: True",
    ],
    "04_killed_and_resumed.py": [
        "the first process ended with signal 9",
        "receipt: duplicate",
        "reply: I was cut off while paying.",
        "paid: ['10']",
    ],
    "05_memory_and_workspace.py": [
        "I remember:\n- the plumber comes on Friday",
        "used these tools: memory_read 2×, memory_write 1×, sessions_history 1×, ",
        "in the workspace: AGENTS.md, memory/the-plumber-comes-on-friday-",
    ],
    "06_mcp_server.py": [
        "The tool shop_price says:\n3 coins",
        "but it failed: interrupted, outcome unknown: the MCP server 'shop' did not finish",
    ],
    "07_real_model.py": [
        "Twelve boxes are left.",
        "1 tool call, ",
        "the model was asked 2 times",
    ],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_says_what_it_should(example: Path):
    answer = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(20),
    )

    for sentence in SAYS[example.name]:
        assert sentence in answer.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_fits_on_a_screen(example: Path):
    assert len(example.read_text().splitlines()) < LONGEST
