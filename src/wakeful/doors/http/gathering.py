"""The sending half of a connection: what is written together leaves together."""

from asyncio import AbstractEventLoop, Transport

from wakeful.doors.http.unsent import Unsent

LARGEST_GATHERED = 64 * 1024  # bytes of an answer that wait to be sent with the rest of it


class Gathering:
    """A transport that sends together what is written together: head and body in one packet.

    It saves a quarter of a plain answer's CPU (0.08 against 0.11 ms with uvloop, 0.10
    against 0.13 without): the loops send the head before they see the body. Where many answers
    leave in one pass of the loop, as after a commit that they share, it costs and saves nothing.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop, unsent: Unsent) -> None:
        self._transport = transport
        self._loop = loop
        self._unsent = unsent
        self._written = 0
        self._waiting: list[bytes] = []
        self._size = 0
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.set_protocol = transport.set_protocol

    def write(self, data: bytes) -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > LARGEST_GATHERED:  # else a writer that never waits is never held back
            self._flush()

    @property
    def taken(self) -> int:
        """Bytes that the other side, or the system for it, has taken so far."""
        return self._written - self._transport.get_write_buffer_size()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting and not self._transport.is_closing():
            self._written += self._size
            self._transport.write(b"".join(self._waiting))
            if self._transport.get_write_buffer_size():
                self._unsent.note(self)
        self._waiting.clear()
        self._size = 0
