"""Which zone is meant, by its IANA name, and how new the data are that say what its clocks show.

The data of a zone come from the first folder that has it, and else from a package: so that their
version may differ from zone to zone.
"""

import os
import re
import zoneinfo
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tzdata import IANA_VERSION

from wakeful.vocabulary.errors import InvalidInput

LONGEST_NAME = 64
# In the folders of zones, and none: seconds count otherwise there, or each machine has its own.
_NO_ZONES = ("posix/", "right/", "Factory", "localtime", "posixrules")
LINK = Path("/etc/localtime")
NAME_FILE = Path("/etc/timezone")
_VERSION = re.compile(r"\d{4}[a-z]+")


def zone_named(name: str, field: str) -> ZoneInfo:
    """Return a zone, or refuse what no zone is called."""
    try:
        if len(name) <= LONGEST_NAME and not name.startswith(_NO_ZONES):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a folder or a stray file among the zones is no zone either
    raise InvalidInput(field, f"must be an IANA name such as Europe/Berlin, not {name[:60]!r}")


def name_of(zone: tzinfo | None, field: str) -> str:
    """Return the IANA name of the user's zone; without one, of the machine's."""
    if zone is UTC:
        return "UTC"
    name = _machines_name() if zone is None else getattr(zone, "key", None)
    if name is None:
        raise InvalidInput(field, "must be given: the user's zone has no IANA name")
    return zone_named(name, field).key


def _machines_name() -> str | None:
    """Return what the zone of this machine is called, as far as the machine tells."""
    given = os.environ.get("TZ")
    if given is not None:
        return given.removeprefix(":") or "UTC"
    if not LINK.exists():
        return "UTC"  # which is what clocks without any settings show
    _, is_there, name = str(LINK.resolve()).partition("zoneinfo/")
    if is_there:
        return name
    try:
        name = NAME_FILE.read_text(encoding="utf-8").strip()
        folder = _folder_of(name)
        # The name outlives a zone that was set by other means; the copy is what clocks go by.
        is_so = folder is not None and (folder / name).read_bytes() == LINK.read_bytes()
    except (ValueError, OSError):
        return None
    return name if is_so else None


@cache
def data_version(name: str) -> str | None:
    """Return the version of the data by which this process knows a zone; None: they do not tell.

    It never changes while the process lives, nor do the data, which are read once.
    """
    folder = _folder_of(name)
    return _version_in(folder) if folder else IANA_VERSION


def may_recompute(stored: str | None, ours: str | None) -> bool:
    """Tell whether what was computed with one version of zone data may be with another.

    What newer data have decided stays: two processes never undo each other's work by turns. Data
    that do not tell their version are older than all that do.
    """
    return stored is None or (ours is not None and ours >= stored)


def _folder_of(name: str) -> Path | None:
    folders = (Path(folder) for folder in zoneinfo.TZPATH)
    return next((folder for folder in folders if (folder / name).is_file()), None)


@cache
def _version_in(folder: Path) -> str | None:
    for name in ("+VERSION", "tzdata.zi"):
        try:
            with (folder / name).open(encoding="utf-8", errors="replace") as file:
                head = file.readline(100)
        except OSError:
            continue
        if found := _VERSION.search(head):
            return found[0]
    return None
