"""What `import wakeful` costs a fresh process."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.fresh import ROOT

ROUNDS = 9
FLOOR = "asyncio, apsw, msgspec"
_SCRIPT = """
import time
started = time.perf_counter()
import {modules}
taken = time.perf_counter() - started
import json, os
pages = int(open("/proc/self/statm").read().split()[1])
print(json.dumps([taken * 1000, pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024]))
"""


def measure(folder: Path) -> list[Figure]:
    floors: list[tuple[float, float]] = []
    values: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        floors.append(_import(FLOOR))
        values.append(_import("wakeful"))
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
    subprocess.run([sys.executable, "-X", "importtime", "-c", "import wakeful"], check=True)


def _import(modules: str) -> tuple[float, float]:
    script = _SCRIPT.format(modules=modules)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    milliseconds, megabytes = json.loads(done.stdout)
    return milliseconds, megabytes
