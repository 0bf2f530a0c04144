"""Named points where a test may kill, hang or fail the process.

`WAKEFUL_FAIL=reply:kill` kills at the first passage of `reply`, `reply:kill:3` at the third;
`hang` and `raise` likewise, several points separated by commas. Without the variable a point does
nothing.
"""

import os
import signal
import time
from collections.abc import Mapping

VARIABLE = "WAKEFUL_FAIL"


class FailpointRaised(Exception):
    """A failpoint was told to raise."""


def failpoint(name: str) -> None:
    """Pass a point: nothing, unless a test has armed it."""
    if _armed:
        _pass(name)


def arm(environ: Mapping[str, str]) -> None:
    """Arm the points that the variable names, and no others."""
    _passages.clear()
    _armed.clear()
    for item in filter(None, environ.get(VARIABLE, "").split(",")):
        name, action, *rest = item.split(":")
        _armed[name] = (action, int(rest[0]) if rest else 1)


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
arm(os.environ)
