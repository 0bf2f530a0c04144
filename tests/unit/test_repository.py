"""Promises about the repository itself."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "wakeful"
LOCK_FILES = sorted((ROOT / "requirements").glob("*.txt"))
ROOM_INITS = sorted(path for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)
# In parts, so that this file does not name them either.
REGISTRY_HOSTS = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry." + "npmjs",
    "registry." + "yarnpkg",
    "crates" + ".io",
)


def test_no_tracked_file_names_a_package_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in tracked_files()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]

    assert found == []


@pytest.mark.parametrize("path", LOCK_FILES, ids=lambda path: path.name)
def test_every_locked_requirement_has_a_version_and_a_hash(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    requirements = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    unpinned = [line for line in requirements if not re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", line)]
    unhashed = [line for line in requirements if "--hash=sha256:" not in line]

    assert requirements != []
    assert unpinned == []
    assert unhashed == []


@pytest.mark.parametrize("path", ROOM_INITS, ids=lambda path: path.parent.name)
def test_a_room_begins_with_a_docstring_and_nothing_else(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert ast.get_docstring(tree) is not None
    assert len(tree.body) == 1


@pytest.mark.parametrize("path", ROOM_INITS, ids=lambda path: path.parent.name)
def test_a_room_says_who_calls_it_whom_it_calls_and_what_it_never_does(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""

    missing = [
        word for word in ("From:", "To:", "Never:") if not re.search(f"^{word} ", docstring, re.M)
    ]

    assert missing == []


def test_the_wheel_holds_the_public_kit_and_none_of_our_own_proofs() -> None:
    files = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    kit = {Path(name).relative_to("wakeful/testing") for name in files if "testing/" in name}

    assert {Path(name).parts[0] for name in files} == {"wakeful"}
    assert {part.parts[0] for part in kit} == {
        *("__init__.py", "kit.py", "ledger.py"),
        *("checker", "providers"),
    }


def tracked_files() -> list[Path]:
    """List what git tracks, or every file outside hidden folders where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
        candidates = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        candidates = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        ]
    return [path for path in candidates if path.is_file()]


def test_a_server_is_installed_without_what_only_tests_need():
    pinned = {file.stem: set(_pins(file)) for file in LOCK_FILES}

    assert pinned["run"] < pinned["all"] < pinned["dev"]
    assert len(pinned["run"]) <= 52
    assert [name for name in ("pytest", "ruff", "hatchling") if name in pinned["all"]] == []


def test_making_a_server_installs_what_it_needs_alone():
    recipe = (ROOT / "Makefile").read_text().partition("\nup:")[2].partition("\n\n")[0]

    assert "scripts/install $(if $(EXTRAS),all,run)" in recipe


def _pins(file: Path) -> list[str]:
    return re.findall(r"^([\w.-]+)==\S+", file.read_text(), re.M)
