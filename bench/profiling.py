"""Where the time goes: one profile of the event loop's thread, one of the store's writer."""

import cProfile
import io
import pstats
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

LINES = 25


def profiled(load: Callable[[Path], None], folder: Path) -> str:
    """Run a load and return the costliest functions of both threads."""
    writers: list[cProfile.Profile] = []

    def begin(frame: FrameType, event: str, arg: Any) -> None:
        # Called once in each new thread, in which it gives way to a real profiler.
        if threading.current_thread().name == "wakeful-writer":
            profile = cProfile.Profile()
            writers.append(profile)
            profile.enable()
        else:
            sys.setprofile(None)

    threading.setprofile(begin)
    loop = cProfile.Profile()
    try:
        loop.runcall(load, folder)
    finally:
        threading.setprofile(None)
    return "\n".join(
        [_top("the event loop's thread", [loop]), _top("the store's writer thread", writers)]
    )


def _top(title: str, profiles: list[cProfile.Profile]) -> str:
    if not profiles:
        return f"{title}: nothing ran on it"
    out = io.StringIO()
    stats = pstats.Stats(profiles[0], stream=out)
    for profile in profiles[1:]:
        stats.add(profile)
    stats.sort_stats("cumulative").print_stats(LINES)
    stats.sort_stats("tottime").print_stats(LINES)
    return f"== {title}\n{out.getvalue()}"
