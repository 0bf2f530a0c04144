"""The operator's token at rest: one private file in the home folder, which a first start makes."""

from pathlib import Path

NAME = "operator.token"


def read(home: Path) -> str | None:
    """Return the token, None if there is no such file or it is empty."""
    try:
        return (home / NAME).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
