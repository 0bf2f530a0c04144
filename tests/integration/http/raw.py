"""Shared by the tests of the HTTP door: bytes on a socket, where a client would be too polite."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.patience import patience

PATIENCE_S = patience(15)


@asynccontextmanager
async def connected(
    port: int,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def exchange(port: int, request: str | bytes) -> bytes:
    """Send bytes and return whatever comes back until the other side closes."""
    raw = request.encode() if isinstance(request, str) else request
    async with asyncio.timeout(PATIENCE_S), connected(port) as (reader, writer):
        writer.write(raw)
        try:
            await writer.drain()
            return await reader.read()
        except ConnectionError:
            return b""
