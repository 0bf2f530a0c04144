"""Speak with a server that is a command: one JSON message per line, over a socket on its pipes."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from wakeful.tools.process import start_error
from wakeful.tools.supervised import Supervised, environment
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.text import one_line

LONGEST_LINE = 4 * 1024 * 1024  # bytes; whoever sends more is cut off
MOST_GARBAGE = 100  # lines in a row that are no messages, until a server is cut off
MOST_UNHEARD = 1000  # answers that a server has asked for and does not take
LAST_WORDS = 300  # characters of its error stream that are told when it ends

_CHUNK = 65_536
_LAST_WORDS_S = 1.0
_PACE_S = 0.05  # between two chunks of an error stream that floods

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class ServerCommand:
    """A running server; everything it started ends with it."""

    def __init__(
        self, argv: Sequence[str], *, folder: Path, env: Mapping[str, str], clock: Clock
    ) -> None:
        self._clock = clock
        self._said = b""  # the end of its error stream
        self._said_all = asyncio.Event()
        # A socket rather than two pipes, as many clients do: both directions in one descriptor.
        self._socket, theirs = socket.socketpair()
        self._errors, their_errors = socket.socketpair()
        key = f"mcp.{os.urandom(8).hex()}"
        try:
            self._process = Supervised(
                argv,
                folder,
                {**environment(key), **env},
                input=theirs.fileno(),
                output=theirs.fileno(),
                errors=their_errors.fileno(),
            )
        except BaseException as error:
            self._socket.close()
            self._errors.close()
            if isinstance(error, OSError | ValueError):
                raise start_error(error, argv) from error
            raise
        finally:
            theirs.close()
            their_errors.close()

    @asynccontextmanager
    async def streams(self, on_end: Callable[[str], object]) -> AsyncGenerator[Streams, None]:
        """Give what is heard and what may be said; `on_end` learns why there is no more."""
        heard_in, heard = anyio.create_memory_object_stream[Incoming](0)
        spoken, spoken_out = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            reader, writer = await asyncio.open_unix_connection(
                sock=self._socket, limit=LONGEST_LINE
            )
            errors, error_writer = await asyncio.open_unix_connection(sock=self._errors)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self._hear(reader, heard_in, spoken_out, on_end), name="mcp hear"
                    ),
                    group.create_task(self._speak(writer, spoken_out), name="mcp speak"),
                    group.create_task(self._listen(errors), name="mcp errors"),
                ]
                try:
                    yield heard, spoken
                finally:
                    for task in tasks:
                        task.cancel()
                    # Not closed in peace: that would wait for somebody who may not listen.
                    writer.transport.abort()
                    error_writer.transport.abort()
        finally:
            for stream in (heard_in, heard, spoken, spoken_out):
                stream.close()
            self._socket.close()
            self._errors.close()
            await self._process.end(self._clock)

    async def _hear(
        self,
        reader: asyncio.StreamReader,
        heard: MemoryObjectSendStream[Incoming],
        spoken: MemoryObjectReceiveStream[SessionMessage],
        on_end: Callable[[str], object],
    ) -> None:
        why = "it ended"
        garbage = 0  # lines in a row
        with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await _line(reader):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    garbage += 1  # a stray print is forgiven
                else:
                    garbage = 0
                    await heard.send(SessionMessage(message))
                if garbage == MOST_GARBAGE:
                    why = f"{MOST_GARBAGE} lines of its output were no messages"
                    break
                if spoken.statistics().tasks_waiting_send > MOST_UNHEARD:
                    why = "it asks for more and more, and does not listen to the answers"
                    break
            else:
                why = "it ended" if line is not None else f"it sent over {LONGEST_LINE} bytes"
        with suppress(TimeoutError):  # both streams end together, unless something holds on to one
            async with time_limit(self._clock, _LAST_WORDS_S):
                await self._said_all.wait()
        words = one_line(self._said.decode("utf-8", "replace"), LAST_WORDS)
        on_end(f"{why}; its last words: {words}" if words else why)
        heard.close()
        spoken.close()  # whoever still wants to say something learns that nobody listens

    async def _speak(
        self, writer: asyncio.StreamWriter, spoken: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        with suppress(ConnectionError, anyio.ClosedResourceError):
            async for message in spoken:
                said = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(said.encode() + b"\n")
                await writer.drain()

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        """Keep the last words, and read on: a server must not hang because nobody listens."""
        with suppress(ConnectionError):
            while chunk := await errors.read(_CHUNK):
                self._said = (self._said + chunk)[-LAST_WORDS * 4 :]
                if len(chunk) == _CHUNK:
                    await self._clock.sleep(_PACE_S)
        self._said_all.set()


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next line, nothing at the end, or None if it is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return None
