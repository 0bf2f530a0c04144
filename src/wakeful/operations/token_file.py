"""The operator's token at rest: one private file in the home folder."""

import os
from pathlib import Path

NAME = "operator.token"


def read(home: Path) -> str | None:
    """Return the token, None if there is no such file or it is empty."""
    try:
        return (home / NAME).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def write(home: Path, token: str) -> Path:
    """Keep a token where only its owner can read it; durable when this returns."""
    draft = home / f"{NAME}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{token}\n")
        file.flush()
        os.fsync(descriptor)
    draft.rename(home / NAME)
    return home / NAME
