"""`python -m bench.bare KIND`: servers that do the least, in a process of their own."""

import asyncio
import json
import socket
import sys
from asyncio import BaseTransport, Transport
from typing import cast

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

FRAME = (  # about an event of an accepted stimulus, as a stream tells it
    b"9e\r\nid: ep_0123456789ab-12345\nevent: stimulus.accepted\n"
    b'data: {"at":"2026-01-01T00:00:00.000Z","session_key":"agent:main:reader:00000",'
    b'"stimulus_id":"st_0123456789ab","origin":"message","source":"operator",'
    b'"priority":"next","outcome":"queued"}\n\n\r\n'
)


def main(kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(json.dumps({"url": url}), flush=True)
    if kind == "route":
        app = Starlette(routes=[Route("/", _hello), Route("/messages", _take, methods=["POST"])])
        config = uvicorn.Config(
            app, http="httptools", loop="uvloop", access_log=False, log_level="warning"
        )
        uvicorn.Server(config).run(sockets=[listener])
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_fan_out(listener))


async def _hello(_: Request) -> Response:
    return PlainTextResponse("awake")


async def _take(request: Request) -> Response:
    return JSONResponse({"length": len(await request.json())}, status_code=202)


async def _fan_out(listener: socket.socket) -> None:
    readers: set[Transport] = set()
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: _FanOut(readers), sock=listener)
    await loop.create_future()


class _FanOut(asyncio.Protocol):
    """`GET /events` reads; a number in the path of a POST is how many events all readers get."""

    def __init__(self, readers: set[Transport]) -> None:
        self._readers = readers
        self._telling: asyncio.Task[None] | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._readers.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        method, path, _ = data.split(b" ", 2)
        if method == b"POST":
            self._telling = asyncio.ensure_future(self._tell(int(path[1:])))
        elif path == b"/events":
            self._transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            self._readers.add(self._transport)
        else:
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def _tell(self, events: int) -> None:
        for _ in range(events):
            for reader in self._readers:
                reader.write(FRAME)
            await asyncio.sleep(0)
        self._transport.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")


if __name__ == "__main__":
    main(sys.argv[1])
