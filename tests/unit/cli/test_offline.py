"""A reader without a server sees what a server shows, and can change nothing."""

import json
from pathlib import Path

import pytest

from wakeful.cli.exits import Missing, Misused
from wakeful.cli.offline import Offline, ReadOnlyStore
from wakeful.runtime import Runtime
from wakeful.settings.load import load
from wakeful.store.sqlite import open_read_only
from wakeful.transcript.indexing import Indexer
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import NotFound, StoreRefused, WakefulError


async def filled(home: Path) -> Offline:
    async with Runtime(home=home) as runtime:
        await runtime.wait(await runtime.send("hello"))
        await Indexer(runtime.store, runtime.clock).find_behind()
    loaded = load(None, {"WAKEFUL_HOME": str(home)})
    return Offline(loaded, home / "wakeful.db", SystemClock())


@pytest.fixture
async def offline(tmp_path: Path) -> Offline:
    return await filled(tmp_path)


def test_what_was_said_is_shown(offline: Offline):
    page = offline.get("/api/sessions/main/entries", limit=1)

    assert len(page["items"]) == 1
    assert page["next"] is not None
    assert offline.get("/api/agents/main")["model"] == "demo"


def test_what_was_said_is_found(offline: Offline):
    found = offline.get("/api/search", q="hel*")

    assert "user" in [hit["role"] for hit in found["items"]]
    with pytest.raises(Misused, match="a quotation mark is not closed"):
        offline.get("/api/search", q='"')


def test_a_transcript_leaves_as_a_file(offline: Offline):
    with offline.exported("main", None) as parts:
        lines = b"".join(parts).splitlines()

    assert [json.loads(line)["type"] for line in lines[:2]] == ["session", "message"]
    with pytest.raises(NotFound), offline.exported("nowhere", None):
        pass


def test_what_is_not_there_is_told_as_a_server_would(offline: Offline):
    with pytest.raises(Missing, match="no session"):
        offline.get("/api/sessions/nowhere")
    with pytest.raises(Missing):
        offline.get("/api/no-such-route")


def test_streams_and_waits_for_commits_are_not_served(offline: Offline):
    with pytest.raises(Missing):
        offline.get("/api/events")


async def test_nothing_can_be_written(tmp_path: Path):
    await filled(tmp_path)

    with open_read_only(tmp_path / "wakeful.db") as reader:
        store = ReadOnlyStore(reader, SystemClock())
        with pytest.raises(WakefulError):
            await store.read("DELETE FROM stimuli")
        with pytest.raises(WakefulError):
            await store.transact(lambda tx: tx.all("DELETE FROM stimuli"))
        with pytest.raises(StoreRefused):
            await store.wait_failed()


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path):
    loaded = load(None, {"WAKEFUL_HOME": str(tmp_path)})

    with pytest.raises(StoreRefused, match="there is no database"):
        Offline(loaded, tmp_path / "wakeful.db", SystemClock()).get("/api/agents")

    assert list(tmp_path.iterdir()) == []
