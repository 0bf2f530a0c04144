"""A server that dies while a session is deleted finishes that at its next start."""

import sqlite3
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.test_killed_imports import FILE, asked
from tests.integration.cli.shell import Home


def put(client: httpx2.Client, session: str, file: bytes = FILE) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post(f"/api/sessions/import?session={session}", content=file, headers=headers)
    assert answer.status_code == 200


def entries_in(home: Home) -> int:
    with sqlite3.connect(f"file:{home.folder / 'wakeful.db'}?mode=ro", uri=True) as database:
        return database.execute("SELECT COUNT(*) FROM entries").fetchone()[0]


@pytest.mark.parametrize("point", ["session-deleted:kill", "entries-removed:kill:2"])
def test_a_kill_in_a_deletion_leaves_nothing_that_comes_back(tmp_path: Path, point: str):
    home = Home(tmp_path / "a home", WAKEFUL_FAIL=point)
    with home.up() as server:
        with asked(home, server.told["url"]) as client:
            put(client, "old")
            with pytest.raises(httpx2.TransportError):
                client.delete("/api/sessions/old")
        server.ended()
    left = entries_in(home)
    del home.environ["WAKEFUL_FAIL"]

    with home.up() as server, asked(home, server.told["url"]) as client:
        seen = client.get("/api/sessions").json()["items"]
        put(client, "small", b"".join(FILE.splitlines(keepends=True)[:2]))
        client.delete("/api/sessions/small")  # answers when nothing is left to remove

    assert left > 0
    assert [one["key"] for one in seen] == ["agent:main:activity"]
    assert entries_in(home) == 0
