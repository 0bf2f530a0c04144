"""What a room says of itself, and what the path says of the code, is true.

A room's docstring names in `To:` every room that it imports and in `From:` every room that imports
it, so that the path can be walked from docstring to docstring. Nobody needs to name the floor that
all stand on (vocabulary, telemetry, store, bus), nor the roof that reaches everywhere (cli,
testing, runtime, assembly, settings). `the ledgers` and `every room` name many at once. More may be
named than is imported: what reaches a room as a function, and what is still to come.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.sources import ROOT, SOURCE, trees

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

PATH_PAGE = ROOT / "docs" / "path.md"
ROOMS = sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)
TOP = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
FLOOR = {"vocabulary", "telemetry", "store", "bus"}
ROOF = {"__init__", "__main__", "cli", "testing", "runtime", "verbs", "assembly", "settings"}
LEDGERS = {
    "broker",
    "turns",
    "transcript",
    "outbox",
    "timers",
    "sleeps",
    "notices",
    "activity",
    "access",
}
MANY = {"every room": TOP, "every ledger": LEDGERS, "the ledgers": LEDGERS}


@cache
def whole_imports() -> list[tuple[Path, str]]:
    """Return each file with each module of ours that it imports."""
    return [
        (SOURCE / file, name)
        for file, tree in trees(SOURCE).items()
        for name in imported(tree)
        if name.startswith("wakeful.")
    ]


def imports() -> list[tuple[Path, str]]:
    """Return each file with each room that it imports."""
    return [(path, name.split(".")[1]) for path, name in whole_imports()]


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module="wakeful", names=names):
                yield from (f"wakeful.{alias.name}" for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case _:
                pass


def said(room: Path, word: str) -> set[str]:
    """Return the rooms that a line of a room's docstring names."""
    docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    found = re.search(rf"^{word}: (.*?)(?=^\w+: |\Z)", docstring or "", re.M | re.S)
    assert found is not None
    named = {name for name in re.findall(r"\w+", found[1]) if name in TOP}
    return named.union(*(rooms for many, rooms in MANY.items() if many in found[1]))


def room_of(path: Path) -> str:
    """Return the room of a file below the package, or its own name if it is a room by itself."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def walked(*, is_floor: bool) -> list[Path]:
    """Return the rooms whose neighbours are to be named."""
    spared = FLOOR if is_floor else ROOF
    return [room for room in ROOMS if room_of(room) not in spared]


@pytest.mark.parametrize("room", walked(is_floor=False), ids=lambda room: room.name)
def test_a_room_names_every_room_that_it_imports(room: Path):
    used = {name for path, name in imports() if path.is_relative_to(room)}

    missing = used - said(room, "To") - FLOOR - {room_of(room)}

    assert missing == set(), f"`To:` in {room.relative_to(ROOT)}/__init__.py"


@pytest.mark.parametrize("room", walked(is_floor=True), ids=lambda room: room.name)
def test_a_room_names_every_room_that_imports_it(room: Path):
    module = ".".join(room.relative_to(SOURCE.parent).parts)
    users = {room_of(path) for path, name in whole_imports() if f"{name}.".startswith(f"{module}.")}

    missing = users - said(room, "From") - ROOF - {room_of(room)}

    assert missing == set(), f"`From:` in {room.relative_to(ROOT)}/__init__.py"


def hops() -> list[tuple[str, str]]:
    """Return the pairs of file and function that the page of the path names."""
    text = PATH_PAGE.read_text(encoding="utf-8")
    return re.findall(r"^ +(?:\d+|asks) (\S+\.py) +([\w.]+) ", text, re.M)


def mentioned() -> list[str]:
    """Return every file and folder of the package that the page names."""
    found = re.findall(r"`([a-z_/]+(?:\.py|/))`", PATH_PAGE.read_text(encoding="utf-8"))
    return sorted({*found, *(file for file, _ in hops())})


def is_named(node: ast.stmt, name: str) -> TypeGuard[Definition]:
    return isinstance(node, Definition) and node.name == name


@pytest.mark.parametrize(("file", "function"), hops())
def test_a_hop_of_the_path_exists(file: str, function: str):
    body: list[ast.stmt] = ast.parse((SOURCE / file).read_text(encoding="utf-8")).body
    for name in function.split("."):
        inside = [node.body for node in body if is_named(node, name)]
        assert inside, f"{file} has no {function}"
        body = inside[0]


@pytest.mark.parametrize("name", mentioned())
def test_a_file_that_the_path_mentions_exists(name: str):
    assert (SOURCE / name).exists()
