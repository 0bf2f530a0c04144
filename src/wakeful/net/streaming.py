"""Answers that are read as they come, over the same guarded wire as everything else."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpcore2
import httpx2

from wakeful.net.addresses import Allowed
from wakeful.net.guard import system_resolver
from wakeful.net.wire import Patience, Wire
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Transient

EVENT_STREAM = "text/event-stream"
LEAST_PAUSE_S = 1.0  # between two requests that only look


class GuardedTransport(httpx2.AsyncBaseTransport):
    """The network of an HTTP client that others wrote: judged addresses, no endless answers."""

    def __init__(
        self, pool: httpcore2.AsyncConnectionPool, clock: Clock, *, most_bytes: int
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._most_bytes = most_bytes
        self._next_look_s = 0.0  # when something may be looked at again

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        if request.method == "GET":
            await self._pace()
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=_unpacked_wanted(request.headers.raw),
                content=request.stream,
            )
        )
        headers = httpx2.Headers(answer.headers)  # whatever their capitals
        packing = headers.get("content-encoding", "identity")
        if packing.lower() not in ("", "identity"):
            # Unpacked, a few bytes may be gigabytes.
            await answer.aclose()
            raise Transient(f"the answer is packed ({packing[:40]!r}), which nobody asked for")
        kind = headers.get("content-type", "").lower()
        # A stream of events goes on for ever; whoever reads it bounds each of them.
        most = None if kind.startswith(EVENT_STREAM) else self._most_bytes
        return httpx2.Response(
            status_code=answer.status,
            headers=headers,
            stream=_Bounded(answer, most),
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def _pace(self) -> None:
        """Wait a moment after the last look: a server that ends its streams at once, and asks to
        be asked again at once, would keep us busy with nothing else.
        """
        now_s = self._clock.monotonic()
        begin_s = max(now_s, self._next_look_s)
        self._next_look_s = begin_s + LEAST_PAUSE_S
        if begin_s > now_s:
            await self._clock.sleep(begin_s - now_s)


def _unpacked_wanted(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    others = [(name, value) for name, value in headers if name.lower() != b"accept-encoding"]
    return [*others, (b"Accept-Encoding", b"identity")]


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends, by itself or by us."""

    def __init__(self, answer: httpcore2.Response, most_bytes: int | None) -> None:
        self._answer = answer
        self._most_bytes = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._answer.aiter_stream():
            read += len(chunk)
            if self._most_bytes is not None and read > self._most_bytes:
                raise Transient(f"the answer has more than {self._most_bytes} bytes")
            yield chunk

    async def aclose(self) -> None:
        with suppress(httpcore2.NetworkError):
            await self._answer.aclose()


async def guarded_transport(
    clock: Clock, *, allowed: Allowed, patience: Patience, most_bytes: int
) -> GuardedTransport:
    """Return a transport that reaches public addresses, and those the operator allowed."""
    sockets: Any = httpcore2.AnyIOBackend()  # declared as if anyio might be missing
    wire = Wire(
        clock=clock,
        patience=patience,
        allowed=allowed,
        resolver=system_resolver,
        dialer=sockets,
        observer=None,
    )
    # Reading the authorities of the machine takes longer than the loop may stand still.
    tls = await asyncio.to_thread(ssl.create_default_context)
    pool = httpcore2.AsyncConnectionPool(ssl_context=tls, network_backend=wire)
    return GuardedTransport(pool, clock, most_bytes=most_bytes)
