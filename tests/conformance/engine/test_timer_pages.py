"""What a page of timers costs does not grow, statement by statement, with how many are due."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import wakes
from wakeful.gate.wakes import GateVerdict, MayWake, Verdict, Wake
from wakeful.intake.accept import IntakeRules
from wakeful.intake.bindings import Binding, Bindings, Match
from wakeful.intake.intake import Intake
from wakeful.notices.notices import Notices
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
from wakeful.store.database import Store, Tx
from wakeful.store.opening import open_store
from wakeful.telemetry.metrics import Metrics
from wakeful.testing.kit import ManualClock
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due, Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Session
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.daily_turns import DailyTurns
from wakeful.triggers.sleeping import Sleeping
from wakeful.triggers.ticking import Ticking
from wakeful.vocabulary.agent import AgentConfig, Agents
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.stimulus import Draft, Receipt, Trust

FEW = 3
BINDING = Binding(match=Match(door="web"), proactive=ProactiveRules(enabled=True))

Fire = Callable[[Tx, Sequence[Due[None]]], None]


class CountedTx:
    """A transaction that counts what is asked of its database."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        self.statements += name in ("all", "one", "run", "many")
        return getattr(self._tx, name)


class Place:
    """A store with a timekeeper, and nobody who runs what is filed."""

    def __init__(self, store: Store, bus: Bus, clock: ManualClock, may_wake: MayWake) -> None:
        ids, agents = Ids(clock), Agents({"main": AgentConfig(id="main")})
        bindings = Bindings([BINDING])
        blocks = ProactiveBlocks(agents, bindings)
        self.store = store
        self.clock = clock
        self.counts: list[int] = []

        def file(tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
            return intake.keep_in(tx, drafts)

        self.ticking = Ticking(blocks, file)
        self.sleeping = Sleeping(bus, file, self.ticking.on_sleep)
        intake = Intake(
            store,
            bus,
            ids,
            agents,
            IntakeRules(),
            bindings,
            settlement=Settlement(bus, [self.sleeping.on_settled]),
            may_wake=wakes.all_of(
                DailyTurns(blocks, Notices(bus, ids), Metrics()).may_wake, may_wake
            ),
        )
        kinds = {
            "sleep": TimerKind(self.counted(self.sleeping.fire)),
            "tick": TimerKind(self.counted(self.ticking.fire)),
        }
        self.keeper = Timekeeper(
            store, bus, clock, kinds, lambda timer: [lane_rows.lock(timer.target)]
        )

    def counted(self, fire: Fire) -> Fire:
        def fire_counted(tx: Tx, dues: Sequence[Due[None]]) -> None:
            counted: Any = CountedTx(tx)
            fire(counted, dues)
            tx.after_commit(lambda: self.counts.append(counted.statements))

        return fire_counted

    async def fire(self, *due: Timer) -> list[int]:
        """Return how many statements each commit took in which these timers fired."""
        self.counts.clear()
        await self.store.transact(lambda tx: timers.put(tx, *due))
        await self.keeper.fire_due()
        return list(self.counts)

    async def filed(self) -> list[tuple[str, int]]:
        rows = await self.store.read(
            "SELECT kind, state, COUNT(*) FROM stimuli GROUP BY kind, state ORDER BY kind, state"
        )
        return [(f"{row[0]} {row[1]}", row[2]) for row in rows]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str | None:
    match request.param:
        case "memory":
            return None
        case "sqlite":
            return tmp_path / "home" / "wakeful.db"
        case _:
            return request.getfixturevalue("migrated_url")


@asynccontextmanager
async def place(
    address: Path | str | None, may_wake: MayWake = wakes.everything
) -> AsyncGenerator[Place]:
    clock = ManualClock()
    store = await open_store(address, clock=clock)
    bus = Bus(store, Ids(clock))
    await bus.start()
    yield Place(store, bus, clock, may_wake)
    await store.close()


def names(prefix: str, count: int) -> list[str]:
    return [f"agent:main:{prefix}:{number:03}" for number in range(count)]


def make_sessions(tx: Tx, session_keys: Sequence[str]) -> None:
    lane_rows.add_missing(tx, session_keys)
    sessions.add_missing(
        tx,
        [
            Session(
                key=key,
                agent_id="main",
                transcript_id=f"tr_{key}",
                branch=f"tr_{key}",
                created_at=tx.now,
                started_at=tx.now,
                binding=BINDING.id,
            )
            for key in session_keys
        ],
    )


def asleep(key: str, now: int) -> Sleep:
    return Sleep(
        owner=key,
        id=f"sl_{key}",
        agent_id="main",
        session_key=key,
        policy=SleepPolicy.WAKE,
        reason="tired",
        trust=Trust.OPERATOR,
        cause_id=None,
        requested_ms=60_000,
        final_ms=60_000,
        created_at=now,
        wake_at=now,
    )


async def sleepers(where: Place, prefix: str, count: int) -> list[Timer]:
    session_keys, now = names(prefix, count), where.clock.now()

    def write(tx: Tx) -> None:
        make_sessions(tx, session_keys)
        sleeps.enter(tx, *(asleep(key, now) for key in session_keys))

    await where.store.transact(write)
    return [
        Timer(
            id=f"sleep {key}",
            due_at=now,
            kind="sleep",
            target=key,
            payload=msgspec.json.encode({"sleep_id": f"sl_{key}"}).decode(),
        )
        for key in session_keys
    ]


async def tickers(where: Place, prefix: str, count: int) -> list[Timer]:
    session_keys, now = names(prefix, count), where.clock.now()
    await where.store.transact(lambda tx: make_sessions(tx, session_keys))
    return [
        Timer(id=f"tick {key}", due_at=now, kind="tick", target=key, payload=f'{{"end_ms": {now}}}')
        for key in session_keys
    ]


async def test_many_who_wake_at_one_instant_take_the_statements_of_a_few(
    address: Path | str | None,
):
    async with place(address) as where:
        count = where.store.yielding_rows
        few = await where.fire(*await sleepers(where, "few", FEW))
        many = await where.fire(*await sleepers(where, "many", count))
        filed = await where.filed()

    assert len(few) == len(many) == 1  # commits
    assert many == few
    assert filed == [("wake pending", FEW + count)]


async def test_many_who_tick_at_one_instant_take_the_statements_of_a_few(
    address: Path | str | None,
):
    async with place(address) as where:
        count = where.store.yielding_rows
        few = await where.fire(*await tickers(where, "few", FEW))
        many = await where.fire(*await tickers(where, "many", count))
        filed = await where.filed()

    assert len(few) == len(many) == 1
    assert many == few
    assert filed == [("tick pending", FEW + count)]


async def test_many_wakes_that_may_not_be_take_the_statements_of_a_few(
    address: Path | str | None,
):
    def refuse(tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        later = range(tx.now + 60_000, tx.now + 60_000 + len(wakes))
        return [GateVerdict(verdict=Verdict.QUIET_HOURS, look_at=look_at) for look_at in later]

    async with place(address, refuse) as where:
        count = where.store.yielding_rows
        few = await where.fire(*await sleepers(where, "few", FEW))
        many = await where.fire(*await sleepers(where, "many", count))
        filed = await where.filed()
        ((left, first),) = await where.store.read(
            "SELECT COUNT(*), MIN(due_at) FROM timers WHERE kind = 'sleep'"
        )

    assert many == few
    assert filed == [("wake suppressed", FEW + count)]
    assert (left, first) == (FEW + count, where.clock.now() + 60_000)
