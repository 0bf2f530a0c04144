"""`init`, `version`: before anything runs."""

import os
import platform
from pathlib import Path

from wakeful import __version__
from wakeful.cli.context import CliContext
from wakeful.settings import environment
from wakeful.settings.places import FILE_NAME
from wakeful.store.migrations import BINARY_VERSION, packaged

# What people put into a home before the first start.
_OURS = frozenset({FILE_NAME, environment.NAME})

TEMPLATE = """\
# Settings of wakeful. Every key has a default: this file may as well be empty.
# All keys: `wakeful config schema`, or the reference page. Check with `wakeful config validate`.

# timezone: Europe/Berlin          # default: the machine's

# server:
#   host: 127.0.0.1                # another address needs an operator token
#   port: 8484

agents:
  main:
    model: demo                    # needs no network and no key
    # instructions: You are brief.
    # queue: {mode: steer}         # what a message does that arrives while the agent is busy
"""


def init(context: CliContext) -> None:
    """Make the home folder and a settings file with comments; nothing is ever overwritten."""
    made = [str(context.home)] if make_home(context.home) else []
    if not context.file.exists():
        context.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(
            context.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
        made.append(str(context.file))
    lines = [f"made {path}" for path in made] or [f"{context.home} is there already"]
    context.out.data(
        {"home": str(context.home), "file": str(context.file), "made": made},
        [*lines, f"next: {_next_step(context)}"],
    )


def _next_step(context: CliContext) -> str:
    if context.running is None:
        return "`wakeful up`"
    return "`wakeful config set KEY VALUE`, which the running server takes at once"


def version(context: CliContext) -> None:
    """Show the versions of wakeful and of what it stands on."""
    found = {
        "wakeful": __version__,
        "python": platform.python_version(),
        "schema": str(packaged()[-1].number),
        "binary": str(BINARY_VERSION),
    }
    context.out.data(found, [f"wakeful {__version__} (Python {found['python']})"])


def make_home(home: Path) -> bool:
    """Make the home folder, private whatever the umask; False if it was there.

    One that somebody has made for us, and has put nothing else into, is closed as well.
    """
    if home.is_dir():
        if home.stat().st_uid == os.getuid() and _OURS.issuperset(os.listdir(home)):
            home.chmod(0o700)
        return False
    home.mkdir(parents=True)
    home.chmod(0o700)
    return True
