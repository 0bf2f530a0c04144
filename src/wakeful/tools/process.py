"""Run a command with a time limit and a cap on its output, and leave nothing of it behind."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import InvalidInput, Overloaded, Permanent, WakefulError
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean

OUTPUT_LIMIT = 1024 * 1024  # bytes that are kept
CHUNK_BYTES = 65_536  # what a pipe holds
CLEANUP_LIMIT_S = 10.0  # a supervisor that takes longer has been stopped by its own command
KEY_VARIABLE = "WAKEFUL_CALL"  # tells a command the idempotency key of its call

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
# Everything else stays here: the runtime's environment holds the keys of its models.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


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
        supervised = _Supervised(argv, folder, _environment(key), output)
    except (OSError, ValueError) as error:
        output.close()
        raise _our_error(error, argv) from error
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


class _Supervised:
    """A command under its supervisor, which ends when we let go of the lifeline."""

    def __init__(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], output: _Output
    ) -> None:
        if not hasattr(os, "pidfd_open"):
            raise Permanent("commands can be run on Linux only")
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._mark = f"{KEY_VARIABLE}={environment[KEY_VARIABLE]}".encode()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), *argv],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output.write_end,
            stderr=output.write_end,
            start_new_session=True,
        )
        output.hand_over()
        try:
            self._exit_watch = os.pidfd_open(self._process.pid)
        except OSError:  # no descriptor left
            self._let_go()
            self._process.wait()
            raise
        # Stays until the end, whoever still waits: this is what reaps.
        self._loop.add_reader(self._exit_watch, self._reap)

    @property
    def exit_code(self) -> int | None:
        code = self._process.returncode
        return 128 - code if code is not None and code < 0 else code

    async def wait(self, clock: Clock, timeout_s: float) -> bool:
        """Wait for the command and whatever it left behind; False if its time was up first."""
        try:
            async with time_limit(clock, timeout_s):
                await self._ended.wait()
        except TimeoutError:
            return False
        finally:
            await self._end(clock)
        return True

    async def _end(self, clock: Clock) -> None:
        """Have everything killed and wait until it is; does nothing if it has ended."""
        self._let_go()
        try:
            async with time_limit(clock, CLEANUP_LIMIT_S):
                await self._ended.wait()
        except TimeoutError:
            self._process.kill()
            await self._ended.wait()

    def _let_go(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _reap(self) -> None:
        self._loop.remove_reader(self._exit_watch)
        os.close(self._exit_watch)
        if self._process.wait() < 0:
            _kill_marked(self._mark)
        self._let_go()
        self._ended.set()


def _environment(key: str) -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, "TERM": "dumb", KEY_VARIABLE: key}


def _kill_marked(mark: bytes) -> None:
    """Kill whatever carries a call's mark, for a command that killed its own supervisor."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


def _our_error(error: Exception, argv: Sequence[str]) -> WakefulError:
    if isinstance(error, OSError):
        match error.errno:
            case errno.E2BIG:
                return InvalidInput("argv", "the command is too long for the system")
            case errno.EAGAIN | errno.ENOMEM | errno.EMFILE | errno.ENFILE:
                return Overloaded(f"no process could be started: {error.strerror}")
            case _:
                return Permanent(f"no process could be started: {error}")
    return InvalidInput("argv", f"cannot be a command: {error} in {argv!r}"[:400])
