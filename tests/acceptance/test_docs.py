"""Every snippet of the documentation is what happens: programs run, commands and keys exist."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.acceptance.newcomer import Newcomer, is_shown, lines_of
from tests.patience import patience
from tests.public_names import public_names
from wakeful.cli.app import tree, with_dashed_words
from wakeful.settings.load import load
from wakeful.settings.purpose import SettingsPurpose

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = {f"{module}.{name}" for module, names in public_names().items() for name in names}
SHOWN = r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?"  # a program, and what it prints
SNIPPETS = [
    pytest.param(snippet, shown, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (snippet, shown) in enumerate(re.findall(SHOWN, page.read_text(), re.S))
]


@pytest.mark.parametrize(("snippet", "shown"), SNIPPETS)
def test_a_snippet_runs_and_prints_what_is_shown(snippet: str, shown: str, tmp_path: Path):
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
    assert not shown or is_shown(shown, answer.stdout), answer.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_snippet_imports_public_names_alone(page: Path):
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)

    private = {name for snippet in snippets for name in imported(snippet)} - PUBLIC

    assert private == set()


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda it: it.name
)
def test_an_example_imports_public_names_alone(example: Path):
    assert set(imported(example.read_text())) - PUBLIC == set()


def imported(program: str) -> Iterator[str]:
    """Yield what a program uses of ours, by its address."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                if module.partition(".")[0] == "wakeful":
                    yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Import(names=names):
                inner = [alias.name for alias in names if alias.name.startswith("wakeful.")]
                yield from inner
            case ast.Attribute(value=ast.Name(id="wakeful"), attr=name):
                yield f"wakeful.{name}"
            case _:
                pass


def typed_on(page: Path) -> list[tuple[str, str]]:
    """Return each block of commands, and what the page shows right after it."""
    return re.findall(r"```sh\n(.*?)```(?:\n\n```\n(.*?)```)?", page.read_text(), re.S)


READ_FIRST = ("first-five-minutes.md", "behind-a-proxy.md")  # by somebody who has nothing yet


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Generator[Newcomer, None, None]:
    somebody = Newcomer(tmp_path_factory.mktemp("newcomer"))
    yield somebody
    somebody.stop()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if typed_on(page)], ids=lambda page: page.name
)
def test_what_a_page_tells_to_type_works_and_says_what_is_shown(
    page: Path, newcomer: Newcomer, tmp_path: Path
):
    is_first = page.name in READ_FIRST
    reader = Newcomer(tmp_path) if is_first else newcomer
    reader.start()
    if not is_first:
        reader.settle_in()
    try:
        for block, shown in typed_on(page):
            said = "".join(map(reader.type, lines_of(block)))
            assert not shown or is_shown(shown, said), said
    finally:
        if is_first:
            reader.stop()


CRONTAB = re.compile(r"```crontab\n(.*?)```", re.S)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if CRONTAB.search(page.read_text())], ids=lambda page: page.name
)
def test_a_line_of_a_crontab_leaves_one_item_however_often_it_runs(page: Path, newcomer: Newcomer):
    newcomer.start()
    for line in CRONTAB.findall(page.read_text()):
        *when, command = line.split(None, 5)
        first, again = (json.loads(newcomer.type(command)) for _ in range(2))

        assert len(when) == 5
        assert (first["outcome"], again["outcome"]) == ("started", "duplicate")
        assert first["stimulus_id"] == again["stimulus_id"]


INLINE = re.findall(
    r"`(?:\w+=\S+ )*wakeful ([^`]+)`|^(?:\w+=\S+ )*wakeful (.*)$",
    "\n".join(page.read_text() for page in PAGES),
    re.M,
)


def test_every_command_that_a_page_names_is_one_that_there_is():
    """With its options, also in the middle of a sentence."""
    known = typer.main.get_command(tree())
    for line in {inline or typed for inline, typed in INLINE} - {"VERB …"}:
        words = with_dashed_words(shlex.split(line, comments=True))
        words = words[: words.index("--")] if "--" in words else words
        command: Any = known
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        options = {option for one in command.params for option in one.opts}
        strange = [word for word in words if re.match("--?[a-z]", word)]

        assert not hasattr(command, "commands") or not words, line
        assert [word for word in strange if word.rstrip(",.") not in options] == [], line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_a_page_are_good(page: Path, tmp_path: Path):
    """Each block of settings loads; files and secrets that it names are not at hand here."""
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block)
        load(file, {"WAKEFUL_HOME": str(tmp_path / "home")}, SettingsPurpose.LOOK)


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
