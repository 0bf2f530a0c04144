"""Transcripts leave over HTTP as files, and files become sessions."""

import httpx2

from tests.integration.http.serving import House, house
from tests.integration.transcript.files import HEADER, pieces, user, written

LINES = {"Content-Type": "application/x-ndjson"}
FILE = written(HEADER, user("00000001", None, "an old story"), user("00000002", "00000001"))


async def put(
    home: House, file: bytes = FILE, token: str | None = None, **query: str
) -> httpx2.Response:
    async with home.client(token or home.operator) as client:
        return await client.post(
            "/api/sessions/import", content=pieces(file, 4096), headers=LINES, params=query
        )


async def test_a_file_becomes_a_session_that_can_be_read_and_taken_along_again():
    async with house() as home, home.client(home.operator) as client:
        answer = await put(home, session="old")
        entries = await client.get("/api/sessions/old/entries")
        taken = await client.get("/api/sessions/old/export")
        first = answer.json()["transcript_id"]
        same = await client.get("/api/sessions/old/export", params={"transcript": first})
        other = await client.get("/api/sessions/old/export", params={"transcript": "tr_1"})

    assert answer.status_code == 200, answer.text
    assert answer.json()["session_key"] == "agent:main:old"
    assert [item["body"]["text"] for item in entries.json()["items"]] == ["an old story", "hi"]
    assert taken.headers["content-type"] == "application/x-ndjson"
    assert taken.content == same.content == FILE
    assert other.status_code == 404


async def test_a_file_may_be_larger_than_any_other_body():
    many = (user(f"{number:08x}", None, "x" * 1000) for number in range(2500))
    file = written(HEADER, *many)

    async with house() as home, home.client(home.operator) as client:
        answer = await put(home, file, session="large")
        taken = await client.get("/api/sessions/large/export")

    assert len(file) > 2 * 1024 * 1024
    assert answer.json()["entries"] == 2500
    assert taken.content == file


async def test_a_refused_import_is_told_while_the_file_is_still_being_sent():
    file = written(HEADER, *(user(f"{number:08x}", None, "x" * 9000) for number in range(2500)))

    async with house() as home:
        await put(home, session="old")
        again = await put(home, file, session="old")
        nobody = await put(home, session="agent:nobody:main")
        bad = await put(home, b"hello\n")

    assert again.status_code == 422
    assert "there is a session" in again.json()["detail"]
    assert nobody.status_code == 404
    assert bad.status_code == 422
    assert bad.json()["detail"].startswith("file: holds no transcript: line 1: not JSON; read are")


async def test_only_the_operator_brings_files_in_and_only_the_owner_takes_them_out():
    async with house() as home:
        sender = await home.token("send")
        refused = await put(home, token=sender)
        await put(home, session="old")
        async with home.client(sender) as client:
            hidden = await client.get("/api/sessions/old/export")
        async with home.client(home.operator) as client:
            wrong = await client.post(
                "/api/sessions/import", content=FILE, headers={"Content-Type": "text/plain"}
            )

    assert refused.status_code == 403
    assert hidden.status_code == 404
    assert wrong.status_code == 415


async def test_a_trial_tells_what_would_become_of_a_file_and_writes_nothing():
    async with house() as home, home.client(home.operator) as client:
        answer = await put(home, FILE + b"{", dry_run="true")
        found = await client.get("/api/sessions")

    assert answer.json()["told"] == [{"line": 4, "what": "cut off", "done": "left out"}]
    assert answer.json()["transcript_id"] is None
    assert [one["key"] for one in found.json()["items"]] == ["agent:main:activity"]
