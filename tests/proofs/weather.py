"""Bad weather, from outside: a stranger's lock, a full disk, a database that stands still.

Phases of it come and go while processes live and die; each is written down, since nobody is held
to a second while the store itself makes everybody wait.
"""

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from tests.children import ROOT, partner
from tests.proofs.process import Place, RigProcess
from wakeful.vocabulary.clock import SystemClock

CALM_S = (0.5, 2.0)
PHASE_S = (0.3, 4.0)
LOCKED = "locked"  # a stranger has the only right to write (SQLite)
FULL = "full"  # not a byte is left where the database lies (SQLite, for whoever may mount)
READ_ONLY = "read-only"  # as a standby is, in a failover (PostgreSQL)
STILL = "still"  # whoever serves our connections stands still, locks in hand (PostgreSQL)
PAUSED = "paused"  # the process itself stands still
DISK = "64m"
BALLAST = "ballast"
_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_SERVING = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Weather:
    """Calm and bad phases of one store; the same for the same seed, never at the same moments."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._chance = random.Random(seed)
        self._clock = SystemClock()
        self.phases: Counter[str] = Counter()

    async def run(self) -> None:
        """Change until cancelled; the weather is calm again afterwards."""
        while True:
            await self._clock.sleep(self._chance.uniform(*CALM_S))
            await self.phase(self._chance.uniform(*PHASE_S))

    async def phase(self, seconds: float) -> None:
        """Let the store be locked, full or still, or take no writes, for a while."""
        if self._place.database != "sqlite":
            await self._chance.choice((self._read_only, self._still))(seconds)
        elif self._place.home.joinpath("wakeful.db").exists():
            is_small = self._place.home.is_mount()
            await self._chance.choice((self._locked, self._full) if is_small else (self._locked,))(
                seconds
            )

    async def pause(self, rig: RigProcess, seconds: float) -> None:
        """Let the process itself stand still for a while."""
        self._note(PAUSED, seconds)
        rig.suspend()
        try:
            await self._clock.sleep(seconds)
        finally:
            rig.wake()

    def _note(self, what: str, seconds: float) -> None:
        self.phases[what] += 1
        self._place.faults.note("weather", phase=what, seconds=seconds)

    async def _locked(self, seconds: float) -> None:
        """Have another process hold the write lock."""
        holder = await partner(
            ["-m", "tests.proofs.weather", str(self._place.address), str(seconds)],
            environ={**os.environ, "PYTHONPATH": str(ROOT)},
            errors=self._place.ledgers / "stderr.log",
        )
        try:
            if await holder.reader.readline():
                self._note(LOCKED, seconds)
            await holder.wait()
        finally:
            holder.signal_all(signal.SIGKILL)
            await holder.wait()
            holder.writer.close()

    async def _full(self, seconds: float) -> None:
        """Fill the file system of the home to the last byte."""
        ballast = self._place.home / BALLAST
        self._note(FULL, seconds)
        try:
            await asyncio.to_thread(fill, ballast)
            await self._clock.sleep(seconds)
        finally:
            ballast.unlink(missing_ok=True)

    async def _still(self, seconds: float) -> None:
        """Stop the processes that serve the database's connections, as a paused machine does."""
        rows = await _fetched(self._place.database, _SERVING)
        pids = [pid for (pid,) in rows if _is_of_postgres(pid)]
        self._note(STILL, seconds)
        try:
            _signal_all(pids, signal.SIGSTOP)
            await self._clock.sleep(seconds)
        finally:
            _signal_all(pids, signal.SIGCONT)

    async def _read_only(self, seconds: float) -> None:
        url = self._place.database
        name = urlsplit(url).path.removeprefix("/")
        self._note(READ_ONLY, seconds)
        try:
            await _execute(url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            await self._clock.sleep(seconds)
        finally:
            await _execute(url, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


async def _execute(url: str, sql: str) -> None:
    """Change a database, and part with everybody who has not heard of it."""
    connection = await asyncpg.connect(
        url, server_settings={"default_transaction_read_only": "off"}
    )
    try:
        await connection.execute(sql)
        await connection.execute(_OTHERS)
    finally:
        await connection.close()


async def _fetched(url: str, sql: str) -> Sequence[Any]:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()


def _is_of_postgres(pid: int) -> bool:
    """Tell whether a process of this number is here, and a server's: it may be elsewhere."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"postgres:")
    except OSError:
        return False


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


@contextmanager
def small_disk(home: Path) -> Generator[None, None, None]:
    """Have a file system of its own for a home, which can be filled; only the superuser may."""
    home.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(home)]
    may = os.geteuid() == 0 and shutil.which("mount") is not None
    is_mounted = may and subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(home)], check=True)


def fill(ballast: Path) -> None:
    """Write until nothing fits any more."""
    piece = b"x" * 65_536
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(piece):
            pass


def hold(path: Path, seconds: float) -> None:
    """Hold the write lock of a SQLite file, and leave without a word as a killed process does."""
    connection = sqlite3.connect(path, timeout=seconds, isolation_level=None)
    with suppress(sqlite3.OperationalError):  # somebody else had it all the time
        connection.execute("BEGIN IMMEDIATE")
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        asyncio.run(SystemClock().sleep(seconds))
    os._exit(0)  # a connection that is closed would tidy up behind the runtime's back


if __name__ == "__main__":
    hold(Path(sys.argv[1]), float(sys.argv[2]))
