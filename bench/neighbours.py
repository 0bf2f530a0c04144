"""Whether anybody else was on this machine while something was measured."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")  # of Linux; elsewhere nobody knows
MOST_CORES = 0.25  # that others may take before what we measure is about them


@dataclass(frozen=True)
class Reading:
    """What was used up to now, in seconds of one core."""

    at: float
    all: float
    own: float  # by this process, and by its children that have ended


def reading(stat: Path = STAT) -> Reading | None:
    """Look at all cores; None if this machine does not tell."""
    try:
        fields = [int(field) for field in stat.read_text("ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    return Reading(
        at=time.perf_counter(),
        all=(user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"),
        own=own.user + own.system + own.children_user + own.children_system,
    )


def taken_by_others(before: Reading, after: Reading) -> float:
    """Return how many cores others took, on average."""
    used = (after.all - before.all) - (after.own - before.own)
    return max(0.0, used / (after.at - before.at))


def too_busy(others: float, cores: int, needed: int) -> bool:
    """Tell whether others took what somebody needed who keeps so many cores busy."""
    return others > max(cores - needed, 0) + MOST_CORES
