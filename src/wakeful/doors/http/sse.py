"""Server-sent events: one writer, whatever it is that is told."""

from asyncio import TaskGroup
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from wakeful.access.principal import Principal
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.problems import note_bug
from wakeful.doors.http.state import ABORT
from wakeful.vocabulary.clock import Alarm, Clock

KEEP_ALIVE_S = 15.0
SEND_S = 30.0  # a reader that takes nothing for so long is cut off; it may come back and resume

MEDIA_TYPE = "text/event-stream"
HELLO = b": wakeful\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

_encode = msgspec.json.Encoder().encode


class FrameSource(Protocol):
    """Where frames come from."""

    async def next(self) -> bytes | None:
        """Wait for frames and return all there are; none after a nudge, None at the end."""
        ...

    def nudge(self) -> None: ...

    async def close(self) -> None: ...


def frame(kind: str, data: Any, cursor: str | None = None) -> bytes:
    """Return one event as it goes over the wire; JSON holds no line break."""
    head = b"" if cursor is None else b"id: %b\n" % cursor.encode()
    return b"%bevent: %b\ndata: %b\n\n" % (head, kind.encode(), _encode(data))


class EventStream(Response):
    """Tells a source's events until the source, the reader or we end it."""

    media_type = MEDIA_TYPE

    def __init__(
        self, source: FrameSource, principal: Principal, streams: OpenStreams, clock: Clock
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._source = source
        self._principal = principal
        self._streams = streams
        self._clock = clock
        self._abort: Callable[[], object] = lambda: None
        self._is_over = False
        self._is_quiet = False  # for so long that a keep-alive is due
        self._sent_at = clock.monotonic()
        self._sending_since: float | None = None
        self._alarm: Alarm | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._abort = scope.get("state", {}).get(ABORT, self._abort)
        try:
            with self._streams.hold(self._principal, self.end):
                await self._streams.check(self._principal)
                await self._serve(receive, send)
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            await self._source.close()

    def end(self) -> None:
        """End the stream at once, even if its reader has stopped reading."""
        self._is_over = True
        self._source.nudge()
        if self._sending_since is not None:
            self._abort()

    async def _serve(self, receive: Receive, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        self._watch_time()
        async with TaskGroup() as group:
            watcher = group.create_task(self._watch_reader(receive), name="stream reader")
            try:
                await self._tell(send)
            except Exception as error:
                note_bug("a stream", error)
                self._abort()
            finally:
                watcher.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        await self._write(send, HELLO)
        while not self._is_over:
            frames = await self._source.next()
            if frames is None:
                return
            if not frames and self._is_quiet:
                frames = KEEP_ALIVE
            if frames:
                await self._write(send, frames)

    async def _write(self, send: Send, frames: bytes) -> None:
        message: Message = {"type": "http.response.body", "body": frames, "more_body": True}
        self._sending_since = self._clock.monotonic()
        await send(message)
        self._sending_since = None
        self._sent_at = self._clock.monotonic()
        self._is_quiet = False

    async def _watch_reader(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_over = True
        self._source.nudge()

    def _watch_time(self) -> None:
        """Look, when it is time, whether the stream is quiet or its reader stuck."""
        now = self._clock.monotonic()
        if self._sending_since is not None:
            left_s = self._sending_since + SEND_S - now
            if left_s <= 0:
                self._is_over = True
                self._abort()
                return
        else:
            left_s = self._sent_at + KEEP_ALIVE_S - now
            if left_s <= 0:
                self._is_quiet = True
                self._source.nudge()
                left_s = KEEP_ALIVE_S
        self._alarm = self._clock.call_later(left_s, self._watch_time)
