"""A store that refuses for a while costs time and nothing else: no lane waits for a restart."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apsw
import asyncpg
import pytest

from tests.integration.engine.looking import turn_of
from tests.integration.engine.stages import CountingClock
from tests.postgres_server import PostgresServer
from wakeful.lanes.dispatcher import CHECK_EVERY_MS
from wakeful.lanes.lane import LONGEST_RETRY_S
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.store.sqlite import SqliteBackend
from wakeful.testing.kit import ManualClock, Pause, in_memory, wait_for
from wakeful.transcript.indexing import GATHER_S
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.stimulus import Receipt

TRIES = 3  # to give a lane back, while that cannot be done
BUSY_MS = 20  # what the store waits for a foreign lock here, so that no test waits for long
READ_ONLY = "default_transaction_read_only"

NO_END = (
    "CREATE TRIGGER no_end BEFORE UPDATE OF state ON turns "
    "BEGIN SELECT RAISE(ABORT, 'injected'); END"
)
NO_WORDS = (
    "CREATE TRIGGER no_words BEFORE UPDATE OF state ON turns WHEN NEW.reply IS NOT NULL "
    "BEGIN SELECT RAISE(ABORT, 'injected'); END"
)
RAISES = "CREATE TRIGGER raises BEFORE UPDATE OF state ON turns BEGIN SELECT injected(); END"


async def executed(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def until(url: str, value: str) -> None:
    """Wait until the server has read its settings again; open sessions follow it."""
    async with asyncio.timeout(10):
        while True:
            connection = await asyncpg.connect(url)
            try:
                if await connection.fetchval(f"SHOW {READ_ONLY}") == value:
                    return
            finally:
                await connection.close()


@asynccontextmanager
async def read_only(server: PostgresServer) -> AsyncGenerator[None, None]:
    """Let nobody write, in open sessions neither, as on a standby in a failover."""
    url, reload = f"{server.address}/postgres", "SELECT pg_reload_conf()"
    await executed(url, f"ALTER SYSTEM SET {READ_ONLY} = on", reload)
    try:
        await until(url, "on")
        yield
    finally:
        await executed(url, f"SET {READ_ONLY} = off", f"ALTER SYSTEM RESET {READ_ONLY}", reload)
        await until(url, "off")


@contextmanager
def locked(home: Path) -> Generator[None, None, None]:
    """Hold the database as a foreign process would, for longer than the store waits for it."""
    connection: Any = apsw.Connection(str(home / "wakeful.db"))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def be_impatient(tx: Tx) -> None:
    tx.all(f"PRAGMA busy_timeout = {BUSY_MS}")


async def tries(clock: CountingClock, count: int = TRIES) -> None:
    """Let a lane be given back so many times, in vain."""
    for _ in range(count):
        await clock.asleep.wait()
        clock.asleep.clear()
        clock.advance(LONGEST_RETRY_S)
    await clock.asleep.wait()


async def let_indexer_rest(runtime: Runtime, clock: CountingClock) -> None:
    """Have everything indexed that there is: what is tested is the lane alone."""
    clock.advance(GATHER_S)
    async with asyncio.timeout(10):
        while not await runtime.store.read("SELECT 1 FROM search_heads"):
            pass


async def execute(runtime: Runtime, sql: str) -> None:
    await runtime.store.transact(lambda tx: tx.run(sql))


async def follow_up(runtime: Runtime, clock: CountingClock, receipt: Receipt) -> Turn:
    """Let the next try be made; return the turn that it ends, after which its lane is free."""
    clock.advance(LONGEST_RETRY_S)
    turn = await turn_of(runtime, receipt)
    assert (await turn_of(runtime, await runtime.send("two"))).reply == "the next answer"
    return turn


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of the test's own: what is set here holds for all of it."""
    server = PostgresServer()
    yield server
    server.stop()


async def test_a_database_that_is_read_only_for_a_while_strands_no_turn(own_server: PostgresServer):
    clock = CountingClock()
    pause = Pause("answered")
    script = [pause, "the next answer"]  # what was answered is kept, and asked for once
    settings = Settings(database=f"{own_server.address}/postgres")
    async with in_memory(script, clock=clock, settings=settings) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await let_indexer_rest(runtime, clock)
        async with read_only(own_server):
            pause.go_on.set()
            await tries(clock)
        turn = await follow_up(runtime, clock, receipt)

    assert (turn.state, turn.reply, turn.attempts) == (TurnState.DONE, "answered", 1)


async def test_a_database_that_refuses_for_a_while_strands_no_turn(
    postgres_url: str,
):
    clock = CountingClock()
    pause = Pause("answered")
    script = [pause, "the next answer"]  # what was answered is kept, and asked for once
    name = urlsplit(postgres_url).path[1:]
    make = (f"CREATE ROLE {name} LOGIN PASSWORD 'secret'", f"ALTER DATABASE {name} OWNER TO {name}")
    await executed(postgres_url, *make)
    url = f"postgresql://{name}:secret@{urlsplit(postgres_url).netloc.rpartition('@')[2]}/{name}"
    async with in_memory(script, clock=clock, settings=Settings(database=url)) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await let_indexer_rest(runtime, clock)
        await executed(postgres_url, f"REVOKE UPDATE ON lanes, turns FROM {name}")
        pause.go_on.set()
        await tries(clock)
        await executed(postgres_url, f"GRANT UPDATE ON lanes, turns TO {name}")
        turn = await follow_up(runtime, clock, receipt)

    assert (turn.state, turn.reply, turn.attempts) == (TurnState.DONE, "answered", 1)


async def test_a_file_that_somebody_else_locks_for_long_strands_no_turn(tmp_path: Path):
    clock = CountingClock()
    pause = Pause("answered")
    script = [pause, "the next answer"]  # what was answered is kept, and asked for once
    settings = Settings(home=tmp_path)
    async with in_memory(script, clock=clock, settings=settings) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        await runtime.store.transact(be_impatient)
        with locked(tmp_path):
            pause.go_on.set()
            await tries(clock)
        turn = await follow_up(runtime, clock, receipt)

    assert (turn.state, turn.reply, turn.attempts) == (TurnState.DONE, "answered", 1)


async def test_a_commit_that_raises_once_costs_nothing(tmp_path: Path):
    left = ["once"]

    def injected(*_: object) -> None:
        if left:
            left.pop()
            raise RuntimeError("injected")

    def arm(tx: Tx) -> None:
        assert isinstance(tx, SqliteBackend)
        connection: Any = tx._connection  # pyright: ignore[reportPrivateUsage]
        connection.create_scalar_function("injected", injected)
        tx.run(RAISES)

    async with in_memory(["kept", "the next answer"]) as runtime:
        await runtime.store.transact(arm)
        turn = await turn_of(runtime, await runtime.send("one"))
        after = await turn_of(runtime, await runtime.send("two"))

    assert not left
    assert (turn.state, turn.reply) == (TurnState.DONE, "kept")
    assert after.reply == "the next answer"


async def test_a_turn_that_fails_while_the_file_is_locked_ends_after_that(tmp_path: Path):
    clock = CountingClock()
    script = ["lost", "the next answer"]
    async with in_memory(script, clock=clock, settings=Settings(home=tmp_path)) as runtime:
        await execute(runtime, NO_END)
        receipt = await runtime.send("one")
        await tries(clock, 1)
        await execute(runtime, "DROP TRIGGER no_end")
        await runtime.store.transact(be_impatient)
        with locked(tmp_path):
            await tries(clock)
        turn = await follow_up(runtime, clock, receipt)

    assert turn.state is TurnState.FAILED
    assert turn.reply == "Something went wrong inside the runtime: Invariant."


async def test_a_turn_whose_end_cannot_be_written_ends_as_soon_as_it_can():
    clock = CountingClock()
    async with in_memory(["lost", "the next answer"], clock=clock) as runtime:
        await execute(runtime, NO_END)
        receipt = await runtime.send("one")
        await tries(clock, 10)
        await execute(runtime, "DROP TRIGGER no_end")
        turn = await follow_up(runtime, clock, receipt)

    assert turn.state is TurnState.FAILED


async def test_a_turn_whose_last_words_cannot_be_written_ends_without_them():
    clock = CountingClock()
    async with in_memory(["lost", "the next answer"], clock=clock) as runtime:
        await execute(runtime, NO_WORDS)
        receipt = await runtime.send("one")
        await tries(clock, 2)
        clock.advance(LONGEST_RETRY_S)
        turn = await turn_of(runtime, receipt)
        await execute(runtime, "DROP TRIGGER no_words")
        after = await turn_of(runtime, await runtime.send("two"))

    assert (turn.state, turn.reply, turn.error_kind) == (TurnState.FAILED, None, "internal")
    assert after.reply == "the next answer"


async def test_a_runtime_that_ends_during_an_outage_keeps_the_turn_for_the_next(tmp_path: Path):
    clock = CountingClock()
    pause = Pause("lost")
    settings = Settings(home=tmp_path, drain_s=0)
    with ExitStack() as stack:
        async with in_memory([pause], clock=clock, settings=settings) as runtime:
            receipt = await runtime.send("one")
            await pause.reached.wait()
            await runtime.store.transact(be_impatient)
            stack.enter_context(locked(tmp_path))
            pause.go_on.set()
            await tries(clock)

    async with in_memory(["answered"], settings=settings) as runtime:
        turn = await turn_of(runtime, receipt)

    assert (turn.state, turn.reply) == (TurnState.DONE, "answered")


async def test_a_lane_that_nobody_works_in_is_found_and_goes_on():
    clock = ManualClock()
    pause = Pause("thinking", Transient("busy", retry_after_s=3600))
    async with in_memory([pause, "answered"], clock=clock) as runtime:
        receipt = await runtime.send("one")
        await pause.reached.wait()
        ((owner,),) = await runtime.store.read("SELECT owner FROM lanes")
        pause.go_on.set()
        left = await wait_for(runtime, "turn.left")
        await runtime.store.transact(lambda tx: strand(tx, owner))
        clock.advance(CHECK_EVERY_MS / 1000)
        turn = await turn_of(runtime, receipt)

    assert (turn.id, turn.state, turn.reply) == (left.turn_id, TurnState.DONE, "answered")


def strand(tx: Tx, owner: str) -> None:
    """Leave every lane as if its task had ended without giving it back."""
    tx.run("UPDATE lanes SET owner = :owner, resume_at = NULL, ready_at = NULL", owner=owner)
