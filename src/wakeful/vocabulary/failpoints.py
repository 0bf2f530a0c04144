"""Named points where a test may kill, hang or fail the process.

`WAKEFUL_FAIL=P6:kill` kills at the first passage of P6, `P6:kill:3` at the third; `hang` and
`raise` likewise, several points separated by commas. Without the variable a point does nothing.
"""

import os
import signal
import time
from collections.abc import Callable

VARIABLE = "WAKEFUL_FAIL"


class FailpointRaised(Exception):
    """A failpoint was told to raise."""


def _plan(text: str) -> dict[str, tuple[str, int]]:
    plan: dict[str, tuple[str, int]] = {}
    for item in filter(None, text.split(",")):
        name, action, *rest = item.split(":")
        plan[name] = (action, int(rest[0]) if rest else 1)
    return plan


def _armed(plan: dict[str, tuple[str, int]]) -> Callable[[str], None]:
    passages: dict[str, int] = {}

    def pass_point(name: str) -> None:
        if name not in plan:
            return
        action, wanted = plan[name]
        passages[name] = passages.get(name, 0) + 1
        if passages[name] != wanted:
            return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "raise":
            raise FailpointRaised(name)
        while True:  # hang: the thread stays here, as a stuck disk or a stuck call would
            time.sleep(3600)

    return pass_point


def _nothing(name: str) -> None:
    pass


failpoint: Callable[[str], None] = (
    _armed(_plan(os.environ[VARIABLE])) if os.environ.get(VARIABLE) else _nothing
)
