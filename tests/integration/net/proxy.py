"""A real proxy on loopback, for tests of the way through one."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class LoopbackProxy:
    """A proxy that leads every name to one port of this machine."""

    leads_to: int
    status: int = 200
    is_mute: bool = False  # it says nothing to whoever wants to be led on
    heads: list[bytes] = field(default_factory=list[bytes])
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            self.was_asked.set()
            if self.is_mute:
                await reader.read()
            elif self.status != 200:
                writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno" % self.status)
            else:
                await self._lead(head, reader, writer)
        writer.close()

    async def _lead(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        onward, there = await asyncio.open_connection("127.0.0.1", self.leads_to)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            there.write(head)
        async with asyncio.TaskGroup() as group:
            group.create_task(_pumped(reader, there))
            group.create_task(_pumped(onward, writer))


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying(
    proxy: LoopbackProxy, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[LoopbackProxy, None]:
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await asyncio.gather(*proxy.tasks)
