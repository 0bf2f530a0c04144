"""A fresh process: start a runtime in a home, run one turn, tell what that took.

With `leave N` it is killed instead, while N turns wait for their model.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.crowd import PROMPT, crowd, names
from wakeful.models.model import Delta, Reply, Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import LaneSettings, Settings
from wakeful.turn.agent import Agent

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 100
KB = 1024


@dataclass(frozen=True)
class Start:
    """What a start took."""

    first_turn_s: float
    memory_mb: float


def start(home: Path) -> Start:
    """Start a runtime in a fresh process and return what it took to its first turn's end."""
    done = _child("start", str(home))
    done.check_returncode()
    return Start(**json.loads(done.stdout))


def leave(home: Path, lanes: int) -> None:
    """Kill a fresh process in the middle of that many turns."""
    done = _child("leave", str(home), str(lanes))
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the process was not killed but left with {done.returncode}")


def memory_mb(process: int | str = "self") -> float:
    """Return the most memory that a process has had resident.

    Not by `ru_maxrss`: a child inherits that of whoever started it.
    """
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("VmHWM:")[2].split()[0]) / KB


async def start_here(home: Path) -> Start:
    started = time.perf_counter()
    async with crowd(home) as callers:
        await callers.turn("fresh")
        taken = time.perf_counter() - started
        return Start(taken, memory_mb())


async def leave_here(home: Path, lanes: int) -> None:
    model = _Mute(lanes)
    settings = Settings(lanes=LaneSettings(main=lanes))
    async with Runtime(agents=[Agent(model=model)], home=home, settings=settings) as runtime:
        async with asyncio.TaskGroup() as group:
            for session in names("copy", lanes):
                group.create_task(runtime.send(PROMPT, session=session))
        await model.all_asked.wait()
        os.kill(os.getpid(), signal.SIGKILL)


class _Mute:
    """A model that never answers."""

    name = "mute"

    def __init__(self, asks: int) -> None:
        self._missing = asks
        self.all_asked = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        self._missing -= 1
        if self._missing == 0:
            self.all_asked.set()
        await asyncio.Event().wait()
        yield Delta(text="")


def _child(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.fresh", *arguments]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S
    )


def _main(act: str, home: str, lanes: str = "0") -> None:
    if act == "leave":
        asyncio.run(leave_here(Path(home), int(lanes)))
    else:
        taken = asyncio.run(start_here(Path(home)))
        print(json.dumps(taken.__dict__))


if __name__ == "__main__":
    _main(*sys.argv[1:])
