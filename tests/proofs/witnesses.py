"""Witnesses inside the process under test: event watchers, the receiver, the sampler."""

import os
import threading
from contextlib import aclosing, suppress
from pathlib import Path

from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.testing import ledger
from wakeful.testing.ledger import Ledger
from wakeful.vocabulary.clock import Clock, SystemClock
from wakeful.vocabulary.errors import StoreRefused, Transient

SAMPLE_EVERY_S = 0.1
AWAY_S = 0.005  # how long a watcher that leaves stays away
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Watcher:
    """Follows all events, coming back where it was: in the next life, or every few events."""

    def __init__(self, path: Path, life: str, leaves_after: int | None = None) -> None:
        seen = [line["cursor"] for line in ledger.read(path) if line["what"] == "saw"]
        self._cursor: str | None = seen[-1] if seen else None
        self._lines = Ledger(path, life=life, is_synced=False)
        self._leaves_after = leaves_after

    async def run(self, runtime: Runtime) -> None:
        if self._cursor is None:
            self._cursor = (await runtime.cursor()).rpartition("-")[0] + "-0"
        clock = SystemClock()
        with suppress(StoreRefused):  # the runtime has stopped
            while True:
                await self._follow(runtime)
                await clock.sleep(AWAY_S)

    async def _follow(self, runtime: Runtime) -> None:
        self._lines.note("came", cursor=self._cursor)
        left = self._leaves_after
        async with aclosing(runtime.subscribe(since=self._cursor)) as events:
            async for event in events:
                if event.seq is None:
                    if event.kind == "reset":
                        self._lines.note("reset", cursor=self._cursor)
                    continue
                self._cursor = event.cursor
                self._lines.note(
                    "saw",
                    cursor=event.cursor,
                    seq=event.seq,
                    kind=event.kind,
                    turn=event.turn_id,
                    stimulus=event.stimulus_id,
                )
                if left is not None:
                    left -= 1
                    if left == 0:
                        return


class Receiver:
    """The door `out`: writes down what it is given; `balky` texts are refused once."""

    def __init__(self, path: Path, life: str) -> None:
        past = ledger.read(path)
        self._refused = {line["delivery"] for line in past if line["what"] == "refused"}
        self._lines = Ledger(path, life=life)

    async def __call__(self, delivery: Delivery) -> None:
        if "balky" in delivery.text and delivery.id not in self._refused:
            self._refused.add(delivery.id)
            self._lines.note("refused", delivery=delivery.id, target=delivery.target)
            raise Transient("the receiver is busy")
        self._lines.note(
            "received",
            delivery=delivery.id,
            target=delivery.target,
            text=delivery.text,
            turn=delivery.turn_id,
        )


class Sampler:
    """Writes down, many times a second, what the process uses and what it has counted."""

    def __init__(self, path: Path, life: str, clock: Clock) -> None:
        self._clock = clock
        self._lines = Ledger(path, life=life, is_synced=False, clock=clock)

    async def run(self, runtime: Runtime) -> None:
        while True:
            self.sample(runtime)
            await self._clock.sleep(SAMPLE_EVERY_S)

    def sample(self, runtime: Runtime) -> None:
        self._lines.note(
            "sample",
            rss=int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES,
            files=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            position=runtime.metrics.position(),
            events=runtime.metrics.events(),
        )
