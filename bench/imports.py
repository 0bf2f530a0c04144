"""What `import wakeful` costs a fresh process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.fresh import ROOT
from bench.served import with_bytecode

ROUNDS = 9
FLOOR = "asyncio, apsw, msgspec"
_SCRIPT = """
import time
started = time.perf_counter()
import {modules}
taken = time.perf_counter() - started
import json
memory = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
print(json.dumps([taken * 1000, int(memory) / 1024]))
"""


def measure(folder: Path) -> list[Figure]:
    floors: list[tuple[float, float]] = []
    values: list[tuple[float, float]] = []
    for modules in (FLOOR, "wakeful"):
        _import(modules, folder)  # compiles them
    for _ in range(ROUNDS):
        floors.append(_import(FLOOR, folder))
        values.append(_import("wakeful", folder))
    return [
        Figure(
            name=name,
            value=median(value[place] for value in values),
            unit=unit,
            floor=median(floor[place] for floor in floors),
            floor_is=f"import {FLOOR}",
        )
        for place, (name, unit) in enumerate((("import", "ms"), ("import.memory", "MB")))
    ]


def load(folder: Path) -> None:
    """Print what each module took; the second time, when all of them are compiled."""
    for arguments in ([], ["-X", "importtime"]):
        command = [sys.executable, *arguments, "-c", "import wakeful"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, **with_bytecode(folder)}, check=True)


def _import(modules: str, folder: Path) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(modules=modules)],
        cwd=ROOT,
        env={**os.environ, **with_bytecode(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    milliseconds, megabytes = json.loads(done.stdout)
    return milliseconds, megabytes
