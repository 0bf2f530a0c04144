"""`python -m bench.pacing`: a provider that streams to many at once, in a process of its own.

`POST /ready N` is answered when N questions wait, and from then on each of them gets a word every
20 ms; they take turns, so that the words are spread over that time.
"""

import asyncio
import json
import socket
import sys
from asyncio import BaseTransport, Transport
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from subprocess import PIPE, Popen
from typing import cast

import uvloop

from wakeful.testing.providers.anthropic import Anthropic
from wakeful.testing.providers.plan import Step

EVERY_S = 0.02
GROUPS = 10
DELTAS = 100
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _pieces() -> list[bytes]:
    step = Step(text="weather " * DELTAS, pieces=DELTAS)
    frames = [frame.data for frame in Anthropic().write({"model": "m"}, step, "000001")]
    first = b"".join(frames[:3])
    pieces = [first, *frames[3:-3], b"".join(frames[-3:])]
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]


PIECES = _pieces()


class Pacer:
    """All who wait and all who are told something."""

    def __init__(self) -> None:
        self.waiting: list[Transport] = []
        self.wanted = 0
        self.asker: Transport | None = None
        self._groups: list[list[tuple[Transport, int]]] = [[] for _ in range(GROUPS)]

    def look(self) -> None:
        if self.asker is None or len(self.waiting) < self.wanted:
            return
        for number, transport in enumerate(self.waiting):
            self._groups[number % GROUPS].append((transport, 0))
        self.waiting.clear()
        self.asker.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        self.asker = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for turn in range(1_000_000_000):
            due += EVERY_S / GROUPS
            await asyncio.sleep(max(0.0, due - loop.time()))
            self._tell(turn % GROUPS)

    def _tell(self, number: int) -> None:
        later: list[tuple[Transport, int]] = []
        for transport, at in self._groups[number]:
            if transport.is_closing():
                continue
            transport.write(PIECES[at] if at < len(PIECES) else b"0\r\n\r\n")
            if at < len(PIECES):
                later.append((transport, at + 1))
        self._groups[number] = later


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._read = b""

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        self._read = body[length:]
        if b"/ready " in head[:20]:
            self._pacer.wanted, self._pacer.asker = int(body[:length]), self._transport
        else:
            self._transport.write(HEAD)
            self._pacer.waiting.append(self._transport)
        self._pacer.look()


@contextmanager
def pacing() -> Generator[int]:
    """Run the provider for as long as the block lasts, and give its port."""
    with Popen([sys.executable, "-m", "bench.pacing"], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            process.kill()


def ready(port: int, count: int) -> None:
    """Return when so many questions wait; from now on they are answered."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/ready", str(count))
    connection.getresponse().read()
    connection.close()


async def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    pacer = Pacer()
    await asyncio.get_running_loop().create_server(lambda: Line(pacer), sock=listener)
    await pacer.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
