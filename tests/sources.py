"""The source of the project and of its tests, read and parsed once for all who look into it."""

import ast
import gc
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SOURCE = ROOT / "src" / "wakeful"


@cache
def texts(folder: Path) -> dict[str, str]:
    """Return every Python file below a folder, by its path from there."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    return {name: files[name].read_text(encoding="utf-8") for name in sorted(files)}


@cache
def trees(folder: Path) -> dict[str, ast.Module]:
    """Return every Python file below a folder, parsed."""
    # What is parsed stays: to look through it for garbage takes longer than to parse it.
    gc.collect()
    gc.disable()
    try:
        found = {name: ast.parse(text) for name, text in texts(folder).items()}
        gc.freeze()
    finally:
        gc.enable()
    return found
