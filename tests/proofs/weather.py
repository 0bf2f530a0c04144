"""Bad weather for a store, from outside: a stranger's lock, or a database that takes no writes.

Phases of it come and go while processes live and die; each is written down, since nobody is held
to a second while the store itself makes everybody wait.
"""

import asyncio
import os
import random
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from tests.children import ROOT, partner
from tests.proofs.process import Place
from wakeful.vocabulary.clock import SystemClock

CALM_S = (0.5, 2.0)
PHASE_S = (0.3, 4.0)
LOCKED = "locked"  # a stranger has the only right to write (SQLite)
READ_ONLY = "read-only"  # as a standby is, in a failover (PostgreSQL)
_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Weather:
    """Calm and bad phases of one store; the same for the same seed, never at the same moments."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._chance = random.Random(seed)
        self._clock = SystemClock()
        self.phases = 0

    async def run(self) -> None:
        """Change until cancelled; the weather is calm again afterwards."""
        while True:
            await self._clock.sleep(self._chance.uniform(*CALM_S))
            await self.phase(self._chance.uniform(*PHASE_S))

    async def phase(self, seconds: float) -> None:
        """Let the store be locked, or take no writes, for a while."""
        if self._place.database != "sqlite":
            await self._read_only(seconds)
        elif self._place.home.joinpath("wakeful.db").exists():
            await self._locked(seconds)

    def _note(self, what: str, seconds: float) -> None:
        self.phases += 1
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
