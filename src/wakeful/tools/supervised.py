"""A command under its supervisor: everything it starts ends with it, or with us."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import Permanent

CLEANUP_LIMIT_S = 10.0  # a supervisor that takes longer has been stopped by its own command
KEY_VARIABLE = "WAKEFUL_CALL"  # tells a command the idempotency key of its call

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
# Everything else stays here: the runtime's environment holds the keys of its models.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


class Supervised:
    """A command under its supervisor, which ends when we let go of the lifeline."""

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        output: int,
        errors: int,
        input: int | None = None,
    ) -> None:
        """Start it; the caller closes its own copies of the descriptors. May raise OSError."""
        if not hasattr(os, "pidfd_open"):
            raise Permanent("commands can be run on Linux only")
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._mark = f"{KEY_VARIABLE}={environment[KEY_VARIABLE]}".encode()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(_SUPERVISOR),
                "-" if input is None else str(input),
                *argv,
            ],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            pass_fds=() if input is None else (input,),
        )
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

    async def ended(self) -> None:
        """Wait for the command and whatever it left behind."""
        await self._ended.wait()

    async def wait(self, clock: Clock, timeout_s: float) -> bool:
        """Wait for the command and whatever it left behind; False if its time was up first."""
        try:
            async with time_limit(clock, timeout_s):
                await self._ended.wait()
        except TimeoutError:
            return False
        finally:
            await self.end(clock)
        return True

    async def end(self, clock: Clock) -> None:
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


def environment(key: str) -> dict[str, str]:
    """Return what a command may know of ours, and the key it is found by."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, "TERM": "dumb", KEY_VARIABLE: key}


def _kill_marked(mark: bytes) -> None:
    """Kill whatever carries a call's mark, for a command that killed its own supervisor."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)
