"""Servers in processes of their own, and what they cost, seen from outside."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict

from bench.fresh import ROOT, memory_mb
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides

TOKEN = "bench-0123456789abcdef0123456789abcdef"
STOP_S = 30
START_S = 60
LOOK_S = 0.002  # between two questions whether a server is ready
NO_MORE: Mapping[str, object] = {}
CPU_CLOCK = 2  # of the kernel's clocks of a process: the time it ran


@dataclass(frozen=True)
class Server:
    """A process that answers at a port."""

    pid: int
    port: int
    ready_s: float  # from the start of the process to its first answer

    def cpu_s(self) -> float:
        """Return the CPU time of all its threads so far."""
        # What clock_getcpuclockid(3) returns, which Python does not offer.
        return time.clock_gettime(~self.pid << 3 | CPU_CLOCK)

    def memory_mb(self) -> float:
        return memory_mb(self.pid)


@contextmanager
def wakeful(
    home: Path, *, queue: QueueOverrides = NO_OVERRIDES, more: Mapping[str, object] = NO_MORE
) -> Generator[Server]:
    """Run the product on a home, with demo, as its command line does."""
    chosen = {name: value for name, value in asdict(queue).items() if value is not None}
    home.mkdir(parents=True, exist_ok=True)
    (home / "wakeful.yaml").write_text(json.dumps({"queue": chosen, **more}), encoding="utf-8")
    environ = {"WAKEFUL_HOME": str(home), "WAKEFUL_TOKEN": TOKEN, "WAKEFUL_PORT": "0"}
    with _running(["-m", "wakeful", "up", "--json"], environ, home.parent, "/readyz") as server:
        yield server


@contextmanager
def bare(kind: str, folder: Path) -> Generator[Server]:
    """Run a floor of `bench.bare`."""
    with _running(["-m", "bench.bare", kind], {}, folder, "/") as server:
        yield server


@contextmanager
def _running(
    arguments: Sequence[str], environ: Mapping[str, str], folder: Path, path: str
) -> Generator[Server]:
    started = time.perf_counter()
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **with_bytecode(folder), **environ},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        if not (line := process.stdout.readline()):
            told = (folder / "server.log").read_text()
            raise RuntimeError(f"{arguments} ended before it listened: {told}")
        url: str = json.loads(line)["url"]
        _wait_until_ready(url + path)
        ready_s = time.perf_counter() - started
        yield Server(process.pid, int(url.rpartition(":")[2]), ready_s)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def with_bytecode(folder: Path) -> dict[str, str]:
    """Have bytecode kept, as an installation does, though outside of the source tree."""
    return {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }


def _wait_until_ready(url: str) -> None:
    until = time.perf_counter() + START_S
    while time.perf_counter() < until:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.HTTPError):
            pass
        time.sleep(LOOK_S)
    raise RuntimeError(f"nothing answers at {url}")
