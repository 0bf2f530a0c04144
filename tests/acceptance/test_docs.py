"""Every Python snippet of the documentation runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patience

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(snippet, id=f"{page.name}-{number}")
    for page in PAGES
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, tmp_path: Path):
    script = tmp_path / "snippet.py"
    script.write_text(snippet.replace("~/.wakeful", str(tmp_path / "home")))

    answer = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(20),
    )

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout or "print" not in snippet


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
