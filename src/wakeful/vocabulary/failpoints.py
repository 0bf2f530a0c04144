"""Named points where a test may kill, hang or fail the process.

`WAKEFUL_FAIL=reply:kill` kills at the first passage of `reply`, `reply:kill:3` at the third;
`hang` and `raise` likewise, several points separated by commas. Without the variable a point does
nothing.
"""

import os
import signal
import time
from collections.abc import Mapping

from wakeful.vocabulary.errors import InvalidInput

VARIABLE = "WAKEFUL_FAIL"
ACTIONS = ("kill", "hang", "raise")


class FailpointRaised(Exception):
    """A failpoint was told to raise."""


def failpoint(name: str) -> None:
    """Pass a point: nothing, unless a test has armed it."""
    if _armed:
        _pass(name)


def arm(environ: Mapping[str, str]) -> None:
    """Arm the points that the variable names, and no others."""
    wanted = dict(_read(item) for item in filter(None, environ.get(VARIABLE, "").split(",")))
    _passages.clear()
    _armed.clear()
    _armed.update(wanted)


def arm_or_exit(environ: Mapping[str, str]) -> None:
    """Arm the points, or end the process with one line: nobody else can tell at this time."""
    try:
        arm(environ)
    except InvalidInput as error:
        raise SystemExit(f"wakeful: {error}") from None


def _read(item: str) -> tuple[str, tuple[str, int]]:
    name, _, rest = item.strip().partition(":")
    action, _, passage = rest.partition(":")
    is_count = passage.isascii() and passage.isdigit() and int(passage[:9]) > 0
    if not name or action not in ACTIONS or (passage and not is_count) or rest.endswith(":"):
        rule = f"{item[:80]!r} is not POINT:ACTION or POINT:ACTION:COUNT, such as reply:kill:3"
        raise InvalidInput(VARIABLE, f"{rule} (actions: {', '.join(ACTIONS)})")
    return name, (action, int(passage or 1))


def _pass(name: str) -> None:
    if name not in _armed:
        return
    action, wanted = _armed[name]
    _passages[name] = _passages.get(name, 0) + 1
    if _passages[name] != wanted:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise FailpointRaised(name)
    while True:  # hang: the thread stays here, as a stuck disk or a stuck call would
        time.sleep(3600)


_armed: dict[str, tuple[str, int]] = {}
_passages: dict[str, int] = {}
arm_or_exit(os.environ)
