"""How long a test waits before it calls something hung: by this machine's measure, not by a clock.

A limit is there to end a test that would never end. What takes a tenth of a second on a quiet
machine takes ten times that on a busy one, so limits grow with what a start of Python takes now.
"""

import os
import subprocess
import sys
import time

VARIABLE = "WAKEFUL_TEST_SLOWNESS"  # measured once per run; workers and children are told
QUIET_S = 0.1  # a start of Python with asyncio, on two quiet cores


def patience(seconds: float) -> float:
    """Return a limit as generous here and now as so many seconds are on a quiet machine."""
    return seconds * slowness()


def slowness() -> float:
    """Say how many times as long as on a quiet machine things take; at least 1."""
    known = os.environ.get(VARIABLE)
    if known is None:
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
        known = os.environ[VARIABLE] = str(max(1.0, (time.monotonic() - started) / QUIET_S))
    return float(known)
