"""A connection after its upgrade to a WebSocket; only a server that has sockets loads this."""

from asyncio import BaseTransport
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from wakeful.doors.http.state import ABORT, GROW
from wakeful.vocabulary.clock import Alarm, Clock

LARGEST_FIRST = 16 * 1024  # bytes of a message, until its sender is known
SEND_S = 30.0  # a reader that takes nothing for so long is cut off


class Upgraded(WebSocketsSansIOProtocol):
    """Still counted; holds little for strangers and for readers that do not read."""

    def __init__(self, *, clock: Clock, left: Callable[[], None], **given: Any) -> None:
        super().__init__(**given)
        self._clock = clock
        self._left = left
        self._stuck: Alarm | None = None
        self._grow(LARGEST_FIRST)

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: self.transport.abort, GROW: self._grow}

    def connection_lost(self, exc: Exception | None) -> None:
        self._moves()
        super().connection_lost(exc)
        self._left()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Its parser takes less than ours, and its refusal of headers would never be sent.
        if not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    def start_keepalive(self) -> None:
        """Forget the handshake, a quarter of what an idle socket holds."""
        super().start_keepalive()
        del self.request, self.response

    def handle_ping(self) -> None:
        """Answer, but not who does not read: pings would fill the memory with pongs."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self._clock.call_later(SEND_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._moves()

    def _moves(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _grow(self, largest: int) -> None:
        self.conn.max_message_size = largest
