"""Durable admissions over HTTP: 64 clients, each of which waits for its receipt.

Their sessions wait for more to be said, so that no turn competes with an admission.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import uvloop

from bench import served, wire
from bench.crowd import PROMPT, names
from bench.figures import Figure, Sense, percentile
from bench.fresh import ROOT
from bench.served import TOKEN, Server
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.vocabulary.queueing import QueueOverrides

CLIENTS = 64
SESSIONS_EACH = 32
ROUNDS = 9
SHARE = 1 / 3  # of the requests that a bare route answers
MOST_CPU = 3  # times that of a bare route
HOUR_MS = 3_600_000
WAITING = QueueOverrides(debounce_ms=HOUR_MS, debounce_max_ms=HOUR_MS, cap=10_000)
BODY = json.dumps({"text": PROMPT}).encode()


def measure(folder: Path) -> list[Figure]:
    with (
        served.bare("route", folder) as bare,
        served.wakeful(folder / "home", queue=WAITING) as product,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(bare, product))


def load(folder: Path) -> None:
    asyncio.run(_serve(folder / "home"))


class Round:
    """One round of requests, and what it took."""

    def __init__(self, rate: float, p99: float, cpu: float, own_cpu: float) -> None:
        self.rate = rate
        self.p99_ms = p99 * 1000
        self.cpu_ms = cpu * 1000
        self.own_cpu_ms = own_cpu * 1000


async def _measure(bare: Server, product: Server) -> list[Figure]:
    plain = [[wire.post("/messages", BODY)] * SESSIONS_EACH] * CLIENTS
    floors: list[Round] = []
    rounds: list[Round] = []
    await _round(bare, plain)
    await _round(product, messages())  # makes the sessions
    for _ in range(ROUNDS):
        floors.append(await _round(bare, plain))
        rounds.append(await _round(product, messages()))
    floor_rate = median(each.rate for each in floors)
    floor_cpu = median(each.cpu_ms for each in floors)
    return [
        Figure(
            name="http",
            value=median(each.rate for each in rounds),
            unit="/s",
            floor=floor_rate,
            floor_is="a bare route that reads JSON",
            sense=Sense.AT_LEAST,
            goal=floor_rate * SHARE,
        ),
        Figure(
            name="http.cpu",
            value=median(each.cpu_ms for each in rounds),
            unit="ms",
            floor=floor_cpu,
            floor_is="CPU of a bare route",
            sense=Sense.AT_MOST,
            goal=floor_cpu * MOST_CPU,
        ),
        Figure(
            name="http.p99",
            value=median(each.p99_ms for each in rounds),
            unit="ms",
            floor=median(each.p99_ms for each in floors),
            floor_is="p99 of a bare route",
            goal=40,
        ),
        Figure(
            name="http.client",
            value=median(each.own_cpu_ms for each in rounds),
            unit="ms",
            floor=median(each.own_cpu_ms for each in floors),
            floor_is="CPU of a client of the bare route",
        ),
    ]


async def _round(server: Server, requests: list[list[bytes]]) -> Round:
    senders = await wire.connect(server.port, CLIENTS)
    count = sum(map(len, requests))
    started, cpu, own_cpu = time.perf_counter(), server.cpu_s(), time.process_time()
    taken = await wire.send_all(senders, requests)
    result = Round(
        rate=count / (time.perf_counter() - started),
        p99=percentile(taken, 99),
        cpu=(server.cpu_s() - cpu) / count,
        own_cpu=(time.process_time() - own_cpu) / count,
    )
    for sender in senders:
        sender.close()
    return result


def messages() -> list[list[bytes]]:
    """Return what each client sends: one message to each of its own sessions."""
    return [
        [
            wire.post(f"/api/sessions/{session}/messages", BODY)
            for session in names(f"client:{client}", SESSIONS_EACH)
        ]
        for client in range(CLIENTS)
    ]


async def _serve(home: Path) -> None:
    """Serve in this process, which may be profiled, what a child of it sends."""
    door = HttpDoor(HttpOptions(port=0, operator_token=TOKEN))
    settings = Settings(queue=WAITING)
    async with Runtime(home=home, settings=settings, http=door) as runtime:
        assert runtime.http is not None
        sending = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.door", str(runtime.http.port), cwd=ROOT
        )
        if await sending.wait():
            raise subprocess.CalledProcessError(sending.returncode or 1, "bench.door")


async def _send(port: int) -> None:
    senders = await wire.connect(port, CLIENTS)
    for _ in range(ROUNDS):
        await wire.send_all(senders, messages())


if __name__ == "__main__":
    uvloop.run(_send(int(sys.argv[1])))
