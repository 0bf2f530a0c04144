"""`environment` in the home folder: keys and other variables, for the server and for every verb."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from wakeful.settings.problems import BadSettings, SettingsProblem

NAME = "environment"
LARGEST_FILE = 64 * 1024

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<text>.*)(?P=quote)(?:\s+#.*)?""")
_COMMENT = re.compile(r"(?:^|\s+)#.*")
_ESCAPED = re.compile(r'\\(["\\$])')


def with_file(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with what the file says; what is set in both keeps its value."""
    return {**read(home), **environ}


def read(home: Path) -> dict[str, str]:
    """Return the variables of the file, none if there is none.

    Raise BadSettings if others could read or change it, or if a line means nothing.
    """
    file = home / NAME
    try:
        with file.open("rb") as opened:
            _refuse_open(file, os.fstat(opened.fileno()))
            raw = opened.read(LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _bad(file, f"cannot be read: {error.strerror}") from None
    if len(raw) > LARGEST_FILE:
        raise _bad(file, f"is larger than {LARGEST_FILE} bytes")
    try:
        return parsed(raw.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        raise _bad(file, "is not UTF-8", raw[: error.start].count(b"\n") + 1) from None


def parsed(text: str, file: Path) -> dict[str, str]:
    """Return what lines `NAME=value` say; blanks, comments, `export` and quotes are understood."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        pair = _LINE.fullmatch(stripped)
        if pair is None:  # never the line itself: it may hold a key
            raise _bad(file, "must be NAME=value", number)
        found[pair[1]] = _value(pair[2])
    return found


def _value(said: str) -> str:
    quoted = _QUOTED.fullmatch(said)
    if quoted is None:
        return _COMMENT.sub("", said).strip()
    text = quoted["text"]
    return text if quoted["quote"] == "'" else _ESCAPED.sub(r"\1", text)


def _refuse_open(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _bad(file, "is not a file")
    if found.st_uid != os.getuid():
        raise _bad(file, "belongs to another user; whoever runs this must own it")
    if mode := stat.S_IMODE(found.st_mode) & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        what = "read" if mode & 0o055 else "change"
        raise _bad(file, f"others can {what} it ({mode:04o}); close it with `chmod 600 {file}`")


def _bad(file: Path, rule: str, line: int | None = None) -> BadSettings:
    return BadSettings([SettingsProblem(place=str(file), line=line, rule=rule)])
