"""What a program may import, as the reference lists it."""

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"


@cache
def public_names() -> dict[str, frozenset[str]]:
    """Return the public names of each public module."""
    rows = re.findall(
        r"^\| `(wakeful[\w.]*)` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.M
    )
    return {module: frozenset(re.findall(r"`(\w+)`", names)) for module, names in rows}
