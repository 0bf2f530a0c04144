"""Where the server of a home listens: a small file that it writes, and others believe with care.

It also says what came of the last new settings, for whoever sent them there.
"""

import os
from pathlib import Path

import msgspec

from wakeful.vocabulary.record import Record

NAME = "server.json"


class Reload(Record):
    """What came of reading the settings again while the server runs."""

    number: int  # 1 for the first
    at: int
    changed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # keys that only a new start changes
    problems: tuple[str, ...] = ()  # why the earlier settings stay


class RunningServer(Record):
    """A server that was started in a home."""

    pid: int
    url: str
    started_at: int
    has_file: bool = True  # its database is the file in the home
    reload: Reload | None = None  # the last time that it read its settings again


EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def reachable(url: str) -> str:
    """Return an address that works on this machine, also when the server listens everywhere."""
    for everywhere, here in EVERYWHERE.items():
        url = url.replace(f"//{everywhere}:", f"//{here}:").replace(f"[{everywhere}]", f"[{here}]")
    return url


def note(home: Path, running: RunningServer) -> None:
    """Write down where the server listens; only its owner can read it."""
    draft = home / f"{NAME}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(msgspec.json.encode(running))
    draft.rename(home / NAME)


def note_reload(home: Path, outcome: Reload) -> None:
    """Write down what came of new settings, if the note is still this process's own."""
    found = _read(home)
    if found is not None and found.pid == os.getpid():
        note(home, msgspec.structs.replace(found, reload=outcome))


def forget(home: Path) -> None:
    """Remove the note, if it is still this process's own."""
    found = _read(home)
    if found is not None and found.pid == os.getpid():
        (home / NAME).unlink(missing_ok=True)


def find(home: Path) -> RunningServer | None:
    """Return the server of a home if its process is alive; a killed one leaves its note behind."""
    found = _read(home)
    return found if found is not None and _is_alive(found.pid) else None


def _read(home: Path) -> RunningServer | None:
    try:
        return msgspec.json.decode((home / NAME).read_bytes(), type=RunningServer)
    except (OSError, msgspec.DecodeError):
        return None


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's: the number was given again
        return False
    return True
