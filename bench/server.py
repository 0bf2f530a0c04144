"""The server when nothing happens: how soon it is ready, what it holds, what it burns."""

import time
from pathlib import Path
from statistics import median

from bench import recovery, served
from bench.figures import Figure, Sense

STARTS = 5
IDLE_S = 20
READY_S = 1.5
READY_BIG_S = 2
MEMORY_MB = 80
IDLE_PERCENT = 0.5
REST_S = 2  # until what follows a start is over


def measure(folder: Path) -> list[Figure]:
    return [*_starts(folder), *_idle(folder)]


def load(folder: Path) -> None:
    with served.wakeful(folder / "home"):
        pass


def _starts(folder: Path) -> list[Figure]:
    big = folder / "big"
    recovery.fill(big)
    bare: list[float] = []
    empty: list[float] = []
    full: list[float] = []
    for number in range(STARTS + 1):
        with served.bare("route", folder) as server:
            bare.append(server.ready_s)
        with served.wakeful(folder / f"empty{number}") as server:
            empty.append(server.ready_s)
        with served.wakeful(big) as server:
            full.append(server.ready_s)
    return [
        Figure(
            name=name,
            value=median(values[1:]),  # the first start compiles
            unit="s",
            floor=median(bare[1:]),
            floor_is="a bare server answers",
            goal=goal,
        )
        for name, values, goal in (
            ("server.ready", empty, READY_S),
            ("server.ready_big", full, READY_BIG_S),
        )
    ]


def _idle(folder: Path) -> list[Figure]:
    with served.bare("route", folder) as bare, served.wakeful(folder / "idle") as product:
        time.sleep(REST_S)
        before = bare.cpu_s(), product.cpu_s()
        time.sleep(IDLE_S)
        floor, value = (
            (server.cpu_s() - cpu) / IDLE_S * 100
            for server, cpu in zip((bare, product), before, strict=True)
        )
        return [
            Figure(
                name="server.memory",
                value=product.memory_mb(),
                unit="MB",
                floor=bare.memory_mb(),
                floor_is="memory of a bare server",
                sense=Sense.AT_MOST,
                goal=MEMORY_MB,
            ),
            Figure(
                name="server.idle",
                value=value,
                unit="%",
                floor=floor,
                floor_is="CPU of a bare server",
                sense=Sense.AT_MOST,
                goal=IDLE_PERCENT,
            ),
        ]
