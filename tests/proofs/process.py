"""The process under test, seen from outside: start it, ask it, kill it."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.children import ROOT, Partner, partner
from tests.patience import patience
from tests.proofs import moved_clock
from wakeful.testing.ledger import Ledger
from wakeful.vocabulary.clock import SystemClock, time_limit

START_S = patience(20)
ANSWER_S = patience(10)
EXIT_S = patience(20)
STILL_S = patience(5)  # longer than any wait for another try that the stand-ins cause

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Gone(Exception):
    """The process ended before it answered: what was asked may or may not have happened."""


class Refused(Exception):
    """The runtime refused what was asked: nothing was written."""


class Failed(Exception):
    """The process answered with an error of its own: what was asked may have happened."""


class Place:
    """The folders of one test: the runtime's home, and the ledgers of everybody else."""

    def __init__(self, folder: Path, database: str = "sqlite") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ledgers = folder / "ledgers"
        self.database = database
        self.ledgers.mkdir(parents=True, exist_ok=True)
        self.address = self.home / "wakeful.db" if database == "sqlite" else database
        self.faults = Ledger(self.ledgers / "faults.jsonl")

    def move_clock(self, to_ms: int) -> None:
        """Put the wall clock of the process so far ahead of the machine's, or behind it."""
        self.faults.note("clock", to_ms=to_ms)
        moved_clock.move(self.ledgers / moved_clock.FILE, to_ms)


class RigProcess:
    """One life of the rig."""

    def __init__(self, process: Partner, faults: Ledger) -> None:
        self._process = process
        self._faults = faults
        self._clock = SystemClock()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._last_id = 0
        self._is_gone = False

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, do: str, **fields: object) -> Any:
        """Send a command and return the answer; raise Gone if the process ends first."""
        if self._is_gone:
            raise Gone
        self._last_id += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = answer
        try:
            self._process.writer.write(_encode({"id": self._last_id, "do": do, **fields}) + b"\n")
            await self._process.writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise Gone from None
        async with time_limit(self._clock, ANSWER_S):
            said = await answer
        if "refused" in said:
            raise Refused(said["refused"])
        if "failed" in said:
            raise Failed(said["failed"])
        return said["ok"]

    async def rest(self, patience_s: float = STILL_S) -> None:
        """Return when nothing runs, waits or is due; TimeoutError once nothing moves any more."""
        position = -1
        while True:
            found = await self.ask("rest", for_s=patience_s)
            if found["is_at_rest"]:
                return
            if found["position"] == position:
                raise TimeoutError(f"nothing moved for {patience_s} s, and there is work left")
            position = found["position"]

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def suspend(self) -> None:
        """Stop the process as the lid of a laptop does."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._faults.note("signal", signal=number.name, pid=self.pid)
            self._process.signal_all(number)

    async def ended(self) -> int:
        """Return the exit code once the process has ended."""
        async with time_limit(self._clock, EXIT_S):
            return await self._process.wait()

    async def stop(self) -> int:
        """Stop the process gracefully."""
        self.terminate()
        return await self.ended()

    async def started(self) -> None:
        async with time_limit(self._clock, START_S):
            await self._ready

    async def read_answers(self) -> None:
        """Hand answers to whoever waits for them, until the process ends."""
        while line := await self._process.reader.readline():
            said = _decode(line)
            if "ready" in said:
                self._ready.set_result(said)
            elif not (answer := self._waiting.pop(said["id"])).done():
                answer.set_result(said)
        self._is_gone = True
        for answer in (self._ready, *self._waiting.values()):
            if not answer.done():
                answer.set_exception(Gone())
                answer.exception()  # nobody may be left to hear it

    async def discard(self) -> None:
        """Make sure that nothing of the process is left."""
        self._process.signal_all(signal.SIGKILL)
        await self._process.wait()
        self._process.writer.close()


@asynccontextmanager
async def running(
    place: Place,
    *,
    env: Mapping[str, str] | None = None,
    wrap: Sequence[str] = (),
    program: Sequence[str] = ("-m", "tests.proofs.rig"),
    options: Sequence[str] = (),
) -> AsyncGenerator[RigProcess, None]:
    """Run one life of the rig for as long as the block lasts; Gone if it dies while starting."""
    arguments = [
        *program,
        *("--home", str(place.home), "--ledgers", str(place.ledgers)),
        *("--database", place.database, *options),
    ]
    armed = {name: (env or {}).get(name, "") for name in ("WAKEFUL_FAIL", "WAKEFUL_MUTANT")}
    place.faults.note("armed", **armed, options=options)
    process = await partner(
        arguments,
        environ={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        errors=place.ledgers / "stderr.log",
        wrap=wrap,
    )
    rig = RigProcess(process, place.faults)
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.read_answers(), name="answers of the rig")
        try:
            await rig.started()
            yield rig
        except Exception as error:
            failure = error  # raised below: whoever wrote the block did not ask for a group
        finally:
            await rig.discard()
    if failure is not None:
        raise failure
