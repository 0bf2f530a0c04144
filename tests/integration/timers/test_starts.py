"""However many sleep, a start looks only at each agent's own session."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import apsw
import pytest

from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Scripted
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.stimulus import Trust

FEW, MANY = 4, 400
HOUR_MS = 3_600_000


class Steps:
    """Counts the steps that SQLite takes for the statements of whoever opens a store.

    Its look at the file itself, which opening a store begins with, does not count.
    """

    def __init__(self) -> None:
        self.count = 0

    def watch(self, connection: apsw.Connection) -> None:
        connection.trace_v2(  # pyright: ignore[reportUnknownMemberType]
            apsw.SQLITE_TRACE_PROFILE, self._on_statement
        )

    def _on_statement(self, event: dict[str, Any]) -> None:
        if not event["sql"].startswith("PRAGMA"):
            self.count += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]


@pytest.fixture
def steps() -> Generator[Steps, None, None]:
    counter = Steps()
    apsw.connection_hooks.append(counter.watch)
    yield counter
    apsw.connection_hooks.remove(counter.watch)


def put_to_sleep(tx: Tx, count: int) -> None:
    wake_at = tx.now + HOUR_MS
    for number in range(count):
        key = f"agent:main:room{number}"
        sleep = Sleep(
            owner=key,
            id=f"sl_{number}",
            agent_id="main",
            session_key=key,
            policy=SleepPolicy.WAKE,
            reason="rest",
            trust=Trust.OPERATOR,
            cause_id=None,
            requested_ms=HOUR_MS,
            final_ms=HOUR_MS,
            created_at=tx.now,
            wake_at=wake_at,
        )
        sleeps.enter(tx, sleep)
        timers.put(
            tx,
            Timer(id=f"sleep {key}", due_at=wake_at, kind="sleep", target=key),
            Timer(id=f"tick {key}", due_at=wake_at, kind="tick", target=key),
        )


async def steps_of_a_start(home: Path, sleepers: int, steps: Steps) -> int:
    clock = ManualClock()
    proactive = ProactiveRules(enabled=True, tick_interval_secs=600)
    agents = [Agent(model=Scripted([]), proactive=proactive)]
    settings = Settings(home=home)
    async with Runtime(agents=agents, settings=settings, clock=clock) as runtime:
        await runtime.store.transact(lambda tx: put_to_sleep(tx, sleepers))
    before = steps.count
    async with Runtime(agents=agents, settings=settings, clock=clock):
        return steps.count - before


async def test_a_start_reads_no_more_for_many_sleepers_than_for_few(tmp_path: Path, steps: Steps):
    few = await steps_of_a_start(tmp_path / "few", FEW, steps)
    many = await steps_of_a_start(tmp_path / "many", MANY, steps)

    assert few > 0
    assert many - few < MANY  # less than a step for each
