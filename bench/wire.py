"""Clients that cost little: raw connections that send, and ones that count what they read."""

import asyncio
import re
import time
from asyncio import BaseTransport, Transport
from collections.abc import Mapping, Sequence
from typing import cast

from bench.served import TOKEN

_LENGTH = re.compile(rb"content-length: (\d+)")
_HEADS = "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
_NO_HEADERS: Mapping[str, str] = {}
_EVENT = b"\ndata: "  # once in each


def get(path: str) -> bytes:
    return f"{_HEADS.format(method='GET', path=path, token=TOKEN)}\r\n".encode()


def post(path: str, body: bytes, headers: Mapping[str, str] = _NO_HEADERS) -> bytes:
    head = _HEADS.format(method="POST", path=path, token=TOKEN)
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    rest = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + rest).encode() + body


class Sender(asyncio.Protocol):
    """Sends requests one after the other over one connection, noting how long each took."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._answer = b""
        self._began = 0.0
        self._taken: list[float] = []
        self._done: asyncio.Future[list[float]] | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionError(f"the server closed the connection: {exc}"))

    async def send(self, requests: Sequence[bytes]) -> list[float]:
        """Return how long each request took; any answer but 202 is an error."""
        self._waiting = list(reversed(requests))
        self._taken = []
        self._done = asyncio.get_running_loop().create_future()
        self._next()
        return await self._done

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return
        self._taken.append(time.perf_counter() - self._began)
        self._answer = b""
        if b" 202 " not in head[:16]:
            self._end(RuntimeError(f"the server answered {head!r} {body!r}"))
        elif self._waiting:
            self._next()
        elif self._done is not None:
            self._done.set_result(self._taken)

    def _next(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._waiting.pop())

    def _end(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)


class Readers:
    """Many connections to one stream, and how many events came over all of them."""

    def __init__(self) -> None:
        self.events = 0
        self._wanted = 0
        self._came = asyncio.Event()

    async def connect(self, port: int, path: str, count: int) -> list[Transport]:
        """Open so many streams."""
        loop = asyncio.get_running_loop()
        transports: list[Transport] = []
        for _ in range(count):
            transport, reader = await loop.create_connection(
                lambda: _Reader(self), "127.0.0.1", port
            )
            transport.write(get(path))
            await reader.began
            transports.append(transport)
        return transports

    async def until(self, events: int) -> None:
        """Wait until so many events came in all."""
        self._wanted = events
        self._came.clear()
        if self.events < events:
            await self._came.wait()

    def note(self, events: int) -> None:
        self.events += events
        if self.events >= self._wanted:
            self._came.set()


class _Reader(asyncio.Protocol):
    """One reader of a stream."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._tail = b""
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.began.done():
            self.began.set_result(None)
        data = self._tail + data
        if events := data.count(_EVENT):
            self._readers.note(events)
        self._tail = data[-len(_EVENT) + 1 :]


async def connect(port: int, count: int) -> list[Sender]:
    """Open so many connections to send over."""
    loop = asyncio.get_running_loop()
    senders: list[Sender] = []
    for _ in range(count):
        _, sender = await loop.create_connection(Sender, "127.0.0.1", port)
        senders.append(sender)
    return senders


async def send_all(senders: Sequence[Sender], requests: Sequence[Sequence[bytes]]) -> list[float]:
    """Have all senders send their requests at once; return how long each request took."""
    taken = await asyncio.gather(
        *(sender.send(own) for sender, own in zip(senders, requests, strict=True))
    )
    return [each for own in taken for each in own]
