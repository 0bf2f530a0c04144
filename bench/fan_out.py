"""Durable events over HTTP: what reaches a hundred readers of the event stream, and its cost.

Two servers get the same messages, one of them without readers; what it costs more is the reading.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uvloop

from bench import door, served, wire
from bench.crowd import names
from bench.figures import Figure, Sense
from bench.served import Server

READERS = 100
SENDERS = 32
MESSAGES_EACH = 16
ROUNDS = 7
EVENTS = SENDERS * MESSAGES_EACH  # one each, once the sessions are there
DELIVERIES = EVENTS * READERS
LEAST_RATE = 30_000
MOST_CPU = 2  # times that of a bare loop that writes


@dataclass(frozen=True)
class Round:
    """What it took to have every event read by every reader."""

    rate: float
    cpu_us: float  # of the server, per delivery


def measure(folder: Path) -> list[Figure]:
    with (
        served.bare("fan-out", folder) as bare,
        served.wakeful(folder / "read", queue=door.WAITING) as product,
        served.wakeful(folder / "unread", queue=door.WAITING) as unread,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(bare, product, unread))


def load(folder: Path) -> None:
    door.load(folder)


async def _measure(bare: Server, product: Server, unread: Server) -> list[Figure]:
    floors: list[Round] = []
    rounds: list[Round] = []
    told = [[wire.post(f"/{EVENTS}", b"{}")]]
    await _unread(product)  # makes the sessions
    await _unread(unread)
    for _ in range(ROUNDS):
        floors.append(await _round(bare, "/events", told))
        alone_us = await _unread(unread) / DELIVERIES * 1e6
        taken = await _round(product, "/api/events", _messages())
        rounds.append(Round(taken.rate, taken.cpu_us - alone_us))
    floor_cpu = median(each.cpu_us for each in floors)
    return [
        Figure(
            name="fanout",
            value=median(each.rate for each in rounds),
            unit="/s",
            floor=median(each.rate for each in floors),
            floor_is="a bare loop that writes",
            sense=Sense.AT_LEAST,
            goal=LEAST_RATE,
        ),
        Figure(
            name="fanout.cpu",
            value=median(each.cpu_us for each in rounds),
            unit="us",
            floor=floor_cpu,
            floor_is="CPU of a bare loop that writes",
            sense=Sense.AT_MOST,
            goal=floor_cpu * MOST_CPU,
        ),
    ]


async def _round(server: Server, path: str, requests: list[list[bytes]]) -> Round:
    readers = wire.Readers()
    streams = await readers.connect(server.port, path, READERS)
    senders = await wire.connect(server.port, len(requests))
    started, cpu = time.perf_counter(), server.cpu_s()
    await wire.send_all(senders, requests)
    await readers.until(DELIVERIES)
    taken = Round(
        rate=DELIVERIES / (time.perf_counter() - started),
        cpu_us=(server.cpu_s() - cpu) / DELIVERIES * 1e6,
    )
    for connection in (*streams, *senders):
        connection.close()
    return taken


async def _unread(server: Server) -> float:
    """Return the CPU seconds of the same messages when nobody reads."""
    senders = await wire.connect(server.port, SENDERS)
    cpu = server.cpu_s()
    await wire.send_all(senders, _messages())
    taken = server.cpu_s() - cpu
    for sender in senders:
        sender.close()
    return taken


def _messages() -> list[list[bytes]]:
    return [
        [
            wire.post(f"/api/sessions/{session}/messages", door.BODY)
            for session in names(f"sender:{sender}", MESSAGES_EACH)
        ]
        for sender in range(SENDERS)
    ]
