"""The failpoints of the product, found in its source, so that none is forgotten."""

import ast
from functools import cache
from pathlib import Path

import wakeful


@cache
def failpoints() -> tuple[str, ...]:
    """Return the name of every point that a process may be told to die at."""
    names: set[str] = set()
    for path in Path(wakeful.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "failpoint":
                inside = ast.walk(node.args[0]) if node.args else ()
                names |= {
                    part.value
                    for part in inside
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    return tuple(sorted(names))
