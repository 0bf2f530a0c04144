"""A proxy in front of PostgreSQL that loses connections at the worst moment."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from urllib.parse import urlsplit

COMMIT = b"Q\0\0\0\x0bCOMMIT\0"  # the message as the driver sends it


class Cut(Enum):
    """What happens to the next COMMIT, and to the connection that carries it."""

    NEVER = "passed on and answered"
    BEFORE = "not passed on, both ends closed"
    AFTER = "passed on and done, its answer thrown away, both ends closed"
    DURING = "passed on, the client's end closed while the server is at it"


class Proxy:
    """Passes everything on until it is told to cut."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self._next = Cut.NEVER
        self.is_down = False
        self.cuts = 0
        self.has_cut = asyncio.Event()

    def cut_next_commit(self, cut: Cut) -> None:
        self._next = cut

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        from_server, to_server = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, to_server]
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            async with asyncio.TaskGroup() as tasks:
                answers = tasks.create_task(self._pass_answers(from_server, writer))
                await self._pass_requests(reader, writer, from_server, to_server, answers)
                answers.cancel()

    def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _pass_requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        answers: asyncio.Task[None],
    ) -> None:
        while request := await reader.read(65536):
            cut = self._next if COMMIT in request else Cut.NEVER
            if cut is Cut.NEVER:
                to_server.write(request)
                await to_server.drain()
                continue
            self._next = Cut.NEVER
            answers.cancel()
            if cut is not Cut.BEFORE:
                to_server.write(request)
                await to_server.drain()
            if cut is Cut.AFTER:
                await asyncio.wait([answers])
                await from_server.read(65536)
            writer.transport.abort()
            if cut is not Cut.DURING:
                to_server.transport.abort()
            self.cuts += 1
            self.has_cut.set()
            return
        to_server.close()

    async def _pass_answers(
        self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while answer := await from_server.read(65536):
            writer.write(answer)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncGenerator[tuple[Proxy, str], None]:
    """Start a proxy; yields it and the address that leads through it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield (
            proxy,
            parts._replace(netloc=parts.netloc.replace(str(parts.port), str(port))).geturl(),
        )
    finally:
        server.close()
        proxy.close()
        await server.wait_closed()
