"""Children of a test: real processes that heed signals and never outlive whoever started them."""

import asyncio
import atexit
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO

import msgspec

from tests.starter import Job

ROOT = Path(__file__).resolve().parents[1]
BY_HAND = "WAKEFUL_TEST_BY_HAND"  # set: nothing is forked, every process does its own imports
LONGEST_LINE = 16 * 1024 * 1024
_PR_SET_PDEATHSIG = 1
_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_prctl = ctypes.CDLL(None).prctl


def heed_signals() -> None:
    """Let children begin with default signals, whatever this process was told to ignore.

    What is ignored or blocked is inherited, what is handled is not: a background job of a shell
    ignores SIGINT, and so would every server that a test wants to interrupt. Whoever ignored a
    signal goes on taking no notice of it.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
    for number in _HEEDED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _take_no_notice)


def _take_no_notice(number: int, frame: FrameType | None) -> None:
    pass


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends: for `preexec_fn`."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def is_forked() -> bool:
    """Say whether children are forked by the starter, or started by hand."""
    return not os.environ.get(BY_HAND)


class Child:
    """A process that the starter has forked, with what a `Popen` has of it."""

    def __init__(
        self, job: Job, *, stdin: int, stdout: int, stderr: int, has_libraries: bool = False
    ) -> None:
        self._status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            files = [theirs.fileno(), stdin, stdout, stderr]
            socket.send_fds(
                _starter(has_libraries=has_libraries), [msgspec.json.encode(job)], files
            )
        self._lock = threading.Lock()
        self.pid = int(self._status.recv(32))
        self.returncode: int | None = None

    def fileno(self) -> int:
        """Return a descriptor that is readable once the process has ended."""
        return self._status.fileno()

    def poll(self) -> int | None:
        """Return how the process ended, None while it has not."""
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                told = self._status.recv(32)
                self.returncode = int(told) if told else -signal.SIGKILL
                self._status.close()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        while (code := self.poll()) is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Talker(Child):
    """A child whose outputs, and if wanted whose input, are pipes of text."""

    def __init__(self, job: Job, *, has_input: bool, has_libraries: bool) -> None:
        out, errors = os.pipe(), os.pipe()
        into = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
        self.stdin = None if into[1] is None else os.fdopen(into[1], "w", encoding="utf-8")
        self.stdout = os.fdopen(out[0], encoding="utf-8")
        self.stderr = os.fdopen(errors[0], encoding="utf-8")
        try:
            super().__init__(
                job,
                stdin=into[0],
                stdout=out[1],
                stderr=errors[1],
                has_libraries=has_libraries,
            )
        finally:
            for file in (into[0], out[1], errors[1]):
                os.close(file)

    def communicate(
        self, input: str | None = None, timeout: float | None = None
    ) -> tuple[str, str]:
        """Say something, read everything and wait for the end; kill what takes too long."""
        late: list[float] = []
        heard: list[str] = []

        def give_up() -> None:
            late.append(timeout or 0)
            self.kill()

        timer = threading.Timer(timeout or threading.TIMEOUT_MAX, give_up)
        listening = threading.Thread(target=lambda: heard.append(self.stderr.read()))
        timer.daemon = True
        timer.start()
        listening.start()
        if self.stdin is not None:
            with suppress(BrokenPipeError), self.stdin as pipe:
                pipe.write(input or "")
        told = self.stdout.read()
        listening.join()
        self.wait()
        timer.cancel()
        self.stdout.close()
        self.stderr.close()
        if late:
            raise subprocess.TimeoutExpired(str(self.pid), late[0], told, heard[0])
        return told, heard[0]


class Partner:
    """A child that an event loop talks to, line by line."""

    def __init__(
        self,
        process: "Child | asyncio.subprocess.Process",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self.reader = reader
        self.writer = writer
        self.pid = process.pid
        self._has_ended = asyncio.Event()
        if isinstance(process, Child):
            asyncio.get_running_loop().add_reader(process.fileno(), self._note_end, process)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        if isinstance(self._process, Child):
            await self._has_ended.wait()
            return self._process.wait()
        return await self._process.wait()

    def signal_all(self, number: signal.Signals) -> None:
        """Signal the whole group, so that nothing outlives a tracer that stands between.

        Not by a process object of asyncio: it would reap the child that the event loop waits for.
        """
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _note_end(self, child: Child) -> None:
        asyncio.get_running_loop().remove_reader(child.fileno())
        child.wait()
        self._has_ended.set()


def talk(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    umask: int = -1,
    has_input: bool = False,
    has_libraries: bool = False,
    folder: Path | None = None,
) -> "Talker | subprocess.Popen[str]":
    """Start `python ARGUMENTS` with pipes, here or in another folder."""
    if is_forked():
        job = _job(arguments, environ, umask, folder)
        return Talker(job, has_input=has_input, has_libraries=has_libraries)
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=dict(environ),
        stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=umask,
        cwd=folder,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


async def partner(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    errors: Path,
    wrap: Sequence[str] = (),
    has_libraries: bool = False,
) -> Partner:
    """Start `python ARGUMENTS`, or `WRAP python ARGUMENTS`; its errors are added to a file."""
    with errors.open("ab") as file:
        if wrap or not is_forked():
            return await _partner_by_hand([*wrap, sys.executable, *arguments], environ, file)
        into, out_of = os.pipe(), os.pipe()
        try:
            child = Child(
                _job(arguments, environ),
                stdin=into[0],
                stdout=out_of[1],
                stderr=file.fileno(),
                has_libraries=has_libraries,
            )
        finally:
            os.close(into[0])
            os.close(out_of[1])
        return Partner(child, *await _streams(out_of[0], into[1]))


async def _partner_by_hand(
    command: Sequence[str], environ: Mapping[str, str], errors: IO[bytes]
) -> Partner:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        limit=LONGEST_LINE,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return Partner(process, process.stdout, process.stdin)


async def _streams(
    readable: int, writable: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(LONGEST_LINE)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(readable, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writable, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


@cache
def _starter(*, has_libraries: bool) -> socket.socket:
    """Return the way to a starter of this process's own, which ends when it is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    libraries = ("libraries",) if has_libraries else ()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.starter", str(theirs.fileno()), *libraries],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


def _job(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    umask: int = -1,
    folder: Path | None = None,
) -> Job:
    return Job(
        arguments=list(arguments),
        environ=dict(environ),
        folder=str(folder or Path.cwd()),
        umask=umask,
    )
