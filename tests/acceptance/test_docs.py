"""Every snippet of the documentation is what happens: programs run, commands and keys exist."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home
from tests.patience import patience
from wakeful.cli.app import VERBS
from wakeful.settings.load import load
from wakeful.settings.purpose import SettingsPurpose

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = ("wakeful", "wakeful.testing")  # from where a how-to may import
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
def test_a_snippet_imports_public_names_alone(page: Path):
    snippets = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
    modules = re.findall(r"^\s*(?:from|import) (wakeful[\w.]*)", snippets, re.M)

    private = [name for name in modules if name != "wakeful" and not name.startswith(PUBLIC[1])]

    assert private == []


COMMANDS = [
    pytest.param(line, id=f"{page.name}-{number}")
    for page in PAGES
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S)
    for number, line in enumerate(re.findall(r"^(?:\w+=\S+ )*wakeful (.*)$", block, re.M))
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_a_page_is_one_that_there_is(line: str):
    """Each is asked for its help; the options that the page names must be there."""
    words = shlex.split(line, comments=True)
    path = next(" ".join(words[:size]) for size in (2, 1) if " ".join(words[:size]) in VERBS)
    options = {word for word in words if word.startswith("-")}

    offered = subprocess.run(
        [sys.executable, "-m", "wakeful", *path.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(20),
    ).stdout

    assert [option for option in options if not re.search(rf"{option}\b", offered)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_a_page_are_good(page: Path, tmp_path: Path):
    """Each block of settings loads; files and secrets that it names are not at hand here."""
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block)
        load(file, {"WAKEFUL_HOME": str(tmp_path / "home")}, SettingsPurpose.LOOK)


def test_the_first_five_minutes_are_as_they_are_told(tmp_path: Path):
    home = Home(tmp_path / "home")
    page = (ROOT / "docs/howto/first-five-minutes.md").read_text()
    (commands, *_) = re.findall(r"```sh\n(wakeful chat .*?)```", page, re.S)
    with home.up() as server:
        for line in re.findall(r"^wakeful (.*)$", commands, re.M):
            words = shlex.split(line, comments=True)
            home.ok(*words, said="hello\n")
        server.kill()
        assert "What time is it?" in home.ok("sessions", "show", "main")
        with home.up():
            assert "Remember the milk" in home.ok("sessions", "show", "main")


@pytest.mark.timeout(900)
def test_the_container_is_built_and_answers(tmp_path: Path):
    engine = shutil.which("docker") or shutil.which("podman") or "false"
    if subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no container engine runs here")
    name = f"wakeful-test-{tmp_path.name.replace('_', '-')}"[:60]
    run = [engine, "run", "-d", "--rm", "--name", name, "-e", f"WAKEFUL_TOKEN={'ab' * 32}", name]
    subprocess.run([engine, "build", "-q", "-t", name, str(ROOT)], check=True)
    try:
        subprocess.run(run, check=True, capture_output=True)
        said = subprocess.run(
            [engine, "exec", name, "wakeful", "chat", "what is 3*4"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.stdout == "3*4 = 12\n", said.stderr
    finally:
        subprocess.run([engine, "rm", "-f", name], check=False, capture_output=True)
        subprocess.run([engine, "rmi", "-f", name], check=False, capture_output=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
