"""A database that cannot be written for a while costs time or a clear refusal, and no message."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.strangers import read_only, stranger_holding
from wakeful.settings.settings import Settings
from wakeful.store import postgres_session
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.kit import Pause, Scripted, in_memory
from wakeful.vocabulary.clock import SystemClock, time_limit
from wakeful.vocabulary.errors import StoreBusy

PATIENCE_S = 10.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_session, "LOCK_TIMEOUT_S", 0.3)
    monkeypatch.setitem(open_sqlite.__kwdefaults__ or {}, "busy_timeout_s", 0.3)


async def test_whoever_sends_or_stops_while_a_stranger_holds_the_database_is_told_so(
    lasting: SettingsFor,
):
    settings = lasting()
    async with in_memory(Scripted(lambda _: "well"), settings=settings) as runtime:
        async with stranger_holding(settings), time_limit(SystemClock(), PATIENCE_S):
            refused = await asyncio.gather(
                runtime.send("hello"), runtime.stop(), return_exceptions=True
            )
            seen = await runtime.entries()
        turn = await runtime.wait(await runtime.send("hello again"))
        rows = await runtime.store.read("SELECT text FROM stimuli")

    assert [type(error) for error in refused] == [StoreBusy, StoreBusy]
    assert seen == []
    assert turn is not None
    assert turn.reply == "well"
    assert [row[0] for row in rows] == ["hello again"]


async def test_a_runtime_ends_while_a_stranger_holds_the_database_and_loses_nothing(
    lasting: SettingsFor,
):
    settings = lasting(drain_s=0.1)
    pause = Pause("not written down")
    async with AsyncExitStack() as strangers:
        async with asyncio.timeout(None) as scope:
            async with in_memory(Scripted([pause]), settings=settings) as runtime:
                receipt = await runtime.send("hello")
                await pause.reached.wait()
                await strangers.enter_async_context(stranger_holding(settings))
                pause.go_on.set()
                scope.reschedule(asyncio.get_running_loop().time() + PATIENCE_S)
    async with in_memory(Scripted(["well"]), settings=settings) as runtime:
        turn = await runtime.wait(receipt)

    assert turn is not None
    assert turn.reply == "well"


async def test_a_server_that_only_reads_for_a_while_is_busy_and_nothing_ends(postgres_url: str):
    settings = Settings(database=postgres_url)
    async with in_memory(Scripted(lambda _: "well"), settings=settings) as runtime:
        async with read_only(postgres_url):
            with pytest.raises(StoreBusy, match="read-only"):
                await runtime.send("hello")
        turn = await runtime.wait(await runtime.send("hello again"))

    assert turn is not None
    assert turn.reply == "well"
