"""A connection may be lost at any moment: each write happens exactly once all the same."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.conformance.store.conftest import Opener
from tests.conformance.store.proxy import Cut, Proxy, proxy_to
from tests.conformance.store.tables import TABLES, Hold, add_note, names_of
from wakeful.store import postgres_session
from wakeful.store.database import Store, Tx
from wakeful.store.postgres import open_postgres
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import StoreBusy

SLOW_COMMIT = """
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON notes
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
"""


@pytest.fixture
async def through_proxy(postgres_url: str) -> AsyncIterator[tuple[Store, Proxy]]:
    async with proxy_to(postgres_url) as (proxy, url):
        store = await open_postgres(url, clock=SystemClock(), migrations=[TABLES])
        yield store, proxy
        await store.close()


@pytest.fixture
async def admin(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize(("cut", "runs_expected"), [(Cut.AFTER, 1), (Cut.BEFORE, 2)])
async def test_a_connection_cut_at_commit_neither_loses_nor_repeats_a_write(
    through_proxy: tuple[Store, Proxy], cut: Cut, runs_expected: int
) -> None:
    """F29: cut after COMMIT was sent."""
    store, proxy = through_proxy
    runs: list[str] = []

    def write(tx: Tx) -> int:
        runs.append("run")
        add_note(tx, f"note-{len(runs)}")
        return len(runs)

    proxy.cut_next_commit(cut)
    result = await store.transact(write)

    assert proxy.cuts == 1
    assert result == len(runs) == runs_expected
    assert await names_of(store) == [f"note-{runs_expected}"]


async def test_every_caller_of_a_cut_group_is_answered_once(
    through_proxy: tuple[Store, Proxy],
) -> None:
    store, proxy = through_proxy
    followed: list[str] = []

    def write(tx: Tx, name: str) -> str:
        tx.after_commit(lambda: followed.append(name))
        return add_note(tx, name)

    hold = Hold()
    names = [f"{number:02}" for number in range(20)]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        writes = [tasks.create_task(store.transact(lambda tx, n=n: write(tx, n))) for n in names]
        proxy.cut_next_commit(Cut.AFTER)
        hold.let_go()

    assert [write.result() for write in writes] == names
    assert followed == names
    assert await names_of(store) == names


async def test_a_commit_still_under_way_is_waited_for(
    through_proxy: tuple[Store, Proxy], admin: asyncpg.Connection
) -> None:
    store, proxy = through_proxy
    await admin.execute(SLOW_COMMIT)
    await admin.execute("SELECT pg_advisory_lock(42)")
    proxy.cut_next_commit(Cut.DURING)

    async with asyncio.TaskGroup() as tasks:
        write = tasks.create_task(store.transact(lambda tx: add_note(tx, "a")))
        await proxy.has_cut.wait()
        seen = await names_of(store)
        was_done = write.done()
        await admin.execute("SELECT pg_advisory_unlock(42)")

    assert seen == []
    assert not was_done
    assert write.result() == "a"
    assert await names_of(store) == ["a"]


async def test_a_session_ended_by_the_server_is_replaced(
    open_on_postgres: Opener, admin: asyncpg.Connection
) -> None:
    store = await open_on_postgres()
    runs: list[str] = []
    hold = Hold()

    def write(tx: Tx) -> str:
        runs.append("run")
        add_note(tx, "a")
        if len(runs) == 1:
            hold(tx)
        return add_note(tx, "b")

    async with asyncio.TaskGroup() as tasks:
        written = tasks.create_task(store.transact(write))
        await hold.entered()
        await _end_sessions(admin)
        hold.let_go()

    assert written.result() == "b"
    assert len(runs) == 2
    assert await names_of(store) == ["a", "b"]
    await store.close()


async def test_sessions_ended_while_idle_are_replaced(
    open_on_postgres: Opener, admin: asyncpg.Connection
) -> None:
    store = await open_on_postgres()
    await names_of(store)
    await _end_sessions(admin)

    await store.transact(lambda tx: add_note(tx, "a"))
    found = await names_of(store)
    await store.close()

    assert found == ["a"]


async def test_a_server_that_is_gone_makes_callers_busy_until_it_is_back(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F29: a restart of the database is waited for."""
    monkeypatch.setattr(postgres_session, "RECONNECT_S", 0.1)
    async with proxy_to(postgres_url) as (proxy, url):
        store = await open_postgres(url, clock=SystemClock(), migrations=[TABLES])
        await store.transact(lambda tx: add_note(tx, "before"))
        proxy.is_down = True
        proxy.close()

        refused = await together_without_hold(store)
        with pytest.raises(StoreBusy):
            await store.read("SELECT 1")
        proxy.is_down = False
        await store.transact(lambda tx: add_note(tx, "after"))
        found = await names_of(store)
        await store.close()

    assert all(isinstance(error, StoreBusy) for error in refused)
    assert found == ["after", "before"]


async def together_without_hold(store: Store) -> list[object]:
    return await asyncio.gather(
        *(store.transact(lambda tx, n=n: add_note(tx, n)) for n in "xyz"), return_exceptions=True
    )


async def test_the_database_cannot_be_reached_at_all() -> None:
    with pytest.raises(StoreBusy, match="cannot be reached"):
        await open_postgres("postgresql://nobody@127.0.0.1:1/none", clock=SystemClock())


async def _end_sessions(admin: asyncpg.Connection) -> None:
    await admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
