"""Run a command with a time limit and a cap on its output, and leave nothing of it behind."""

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from wakeful.tools.supervised import Supervised, environment
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput, Overloaded, Permanent, WakefulError
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean

OUTPUT_LIMIT = 1024 * 1024  # bytes that are kept
CHUNK_BYTES = 65_536  # what a pipe holds


class Finished(Record):
    """How a command ended."""

    exit_code: int | None  # None: it was ended because its time was up
    output: str  # both of its streams, as they came
    dropped_bytes: int  # of output, beyond the cap


async def run(
    argv: Sequence[str],
    *,
    folder: Path,
    clock: Clock,
    timeout_s: float,
    key: str,
    output_limit: int = OUTPUT_LIMIT,
) -> Finished:
    """Run a command to its end or to the end of its time.

    When this returns, or is cancelled, everything the command started has been killed and reaped.
    """
    output = _Output(output_limit)
    try:
        end = output.write_end
        supervised = Supervised(argv, folder, environment(key), output=end, errors=end)
    except (OSError, ValueError) as error:
        output.close()
        raise start_error(error, argv) from error
    output.hand_over()
    try:
        is_in_time = await supervised.wait(clock, timeout_s)
    finally:
        output.close()
    return Finished(
        exit_code=supervised.exit_code if is_in_time else None,
        output=output.text,
        dropped_bytes=output.dropped_bytes,
    )


class _Output:
    """The reading end of a pipe: keeps the beginning, counts the rest."""

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._kept = bytearray()
        self._room = limit
        self.dropped_bytes = 0
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    @property
    def text(self) -> str:
        return clean(self._kept.decode("utf-8", "replace"))

    def hand_over(self) -> None:
        """Close our copy of the writing end, which a child now has."""
        os.close(self.write_end)
        self.write_end = -1

    def close(self) -> None:
        """Take what is in the pipe already; never wait for somebody who still holds it."""
        self._loop.remove_reader(self._read_end)
        while self._room > 0 and self._read():
            pass
        os.close(self._read_end)
        if self.write_end >= 0:
            self.hand_over()

    def _read(self) -> bool:
        try:
            data = os.read(self._read_end, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._read_end)
            return False
        self._kept += data[: self._room]
        self.dropped_bytes += max(0, len(data) - self._room)
        self._room = max(0, self._room - len(data))
        return True


def start_error(error: Exception, argv: Sequence[str]) -> WakefulError:
    """Return why a command could not be started, in our words."""
    if isinstance(error, OSError):
        match error.errno:
            case errno.E2BIG:
                return InvalidInput("argv", "the command is too long for the system")
            case errno.EAGAIN | errno.ENOMEM | errno.EMFILE | errno.ENFILE:
                return Overloaded(f"no process could be started: {error.strerror}")
            case _:
                return Permanent(f"no process could be started: {error}")
    return InvalidInput("argv", f"cannot be a command: {error} in {argv!r}"[:400])
