"""Shared by the tests of what leaves: real receivers on loopback, and networks that are made up."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpcore2
import msgspec

from tests.patience import patience
from wakeful.net.wire import Connect

PATIENCE_S = patience(10)
PUBLIC = "93.184.215.14"  # stands for any public address; nothing here ever dials it


@dataclass(frozen=True)
class Received:
    """One request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body, type=dict[str, Any])


# Answers one request on its connection; the connection is closed when it returns.
Manner = Callable[[Received, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def answers(*statuses: int, headers: str = "", body: str = "") -> Manner:
    """Answer with these statuses in turn, and with the last one from then on."""
    left = list(statuses)

    async def manner(received: Received, writer: asyncio.StreamWriter) -> None:
        status = left.pop(0) if len(left) > 1 else left[0]
        head = f"HTTP/1.1 {status} So\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        writer.write((head + body).encode())

    return manner


async def says_nothing(received: Received, writer: asyncio.StreamWriter) -> None:
    """Keep the connection open and the other side waiting."""
    await asyncio.get_running_loop().create_future()


@dataclass
class Receiver:
    """A server on loopback that writes down what it is sent."""

    manner: Manner = field(default_factory=lambda: answers(200))
    requests: list[Received] = field(default_factory=list[Received])
    connections: int = 0
    names: list[str | None] = field(default_factory=list[str | None])  # asked for by TLS
    port: int = 0
    came: asyncio.Queue[Received] = field(default_factory=asyncio.Queue[Received])
    left: asyncio.Queue[None] = field(default_factory=asyncio.Queue[None])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=canary"

    @property
    def ids(self) -> list[str]:
        return [received.id for received in self.requests]

    async def next(self, count: int = 1) -> list[Received]:
        """Return the next requests, once they have come."""
        async with asyncio.timeout(PATIENCE_S):
            return [await self.came.get() for _ in range(count)]

    async def gone(self) -> None:
        """Return when the other side has ended one more connection."""
        async with asyncio.timeout(PATIENCE_S):
            await self.left.get()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            received = await _read(reader)
            self.requests.append(received)
            self.came.put_nowait(received)
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(reader))
                answer = group.create_task(self.manner(received, writer))
                await asyncio.wait((watch, answer), return_when=asyncio.FIRST_COMPLETED)
                watch.cancel()
                answer.cancel()
            with suppress(ConnectionError):
                await writer.drain()
        except* (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            await reader.read()
        self.left.put_nowait(None)


@asynccontextmanager
async def receiving(
    manner: Manner | None = None, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Receiver, None]:
    """Run a receiver for as long as the block lasts."""
    receiver = Receiver() if manner is None else Receiver(manner)
    tasks: set[asyncio.Task[None]] = set()

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(receiver.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(on_connect, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Resolver:
    """A name server that gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Network(httpcore2.AsyncNetworkBackend):
    """A made-up internet: the addresses in it are receivers on loopback, others are dead."""

    def __init__(self, **ports: int) -> None:
        self._ports = {name.removeprefix("at_").replace("_", "."): p for name, p in ports.items()}
        self._sockets: Any = httpcore2.AnyIOBackend()
        self.dialed: list[str] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.dialed.append(host)
        if host not in self._ports:
            raise httpcore2.ConnectError("nobody is there")
        return await self._sockets.connect_tcp("127.0.0.1", self._ports[host])


class Log:
    """The connect log."""

    def __init__(self) -> None:
        self.connects: list[Connect] = []

    def __call__(self, connect: Connect) -> None:
        self.connects.append(connect)

    @property
    def addresses(self) -> list[str]:
        return [connect.address for connect in self.connects]


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.split("\r\n")[:-2]
    headers = {name.lower(): value for name, _, value in (f.partition(": ") for f in fields)}
    assert len(headers) == len(fields), "a header was said twice"
    return Received(line, headers, await reader.readexactly(int(headers["content-length"])))


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate; return what serves it and what trusts it."""
    made, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *(
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
                "-addext",
                f"subjectAltName=DNS:{name}",
            ),
            *("-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(made, key)
    return served, ssl.create_default_context(cafile=str(made))
