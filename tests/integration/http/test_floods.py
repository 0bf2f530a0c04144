"""Floods stop at the door: slow, huge, packed, deep, many."""

import asyncio
import gzip
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from tests.integration.http.raw import connected, exchange
from tests.integration.http.serving import House, house
from tests.patience import patience
from wakeful.doors.http import connection
from wakeful.doors.http.arriving import BODY_SECONDS, MOST_ARRIVING
from wakeful.doors.http.connection import HEADER_SECONDS, LARGEST_HEAD
from wakeful.doors.http.messages import LARGEST_MESSAGE
from wakeful.store.database import Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.entry import EntryKind, NoteBody

MEBIBYTE = 1024 * 1024


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def head(home: House, path: str, *more: str) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {home.operator}",
        "Content-Type: application/json",
        *more,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def stimuli(home: House) -> int:
    return (await home.runtime.store.read("SELECT COUNT(*) FROM stimuli"))[0][0]


async def test_a_body_that_drips_is_cut_off_by_its_whole_time():
    """T10: a slow body has no more time than any other."""
    clock = ManualClock()
    async with (
        house(clock=clock) as home,
        home.client() as client,
        connected(home.port) as (reader, writer),
        asyncio.timeout(patience(10)),
        asyncio.TaskGroup() as group,
    ):
        answer = group.create_task(reader.readline())
        writer.write(head(home, "/api/halt", "Content-Length: 1000"))
        drops = 0
        while not answer.done():
            writer.write(b" ")
            drops += 1
            await client.get("/healthz")  # by its answer the server has seen the drop
            clock.advance(BODY_SECONDS / 8)
            await client.get("/healthz")

    assert answer.result().startswith(b"HTTP/1.1 408")
    assert drops < 20


async def test_headers_that_drip_are_cut_off():
    clock = ManualClock()
    async with (
        house(clock=clock) as home,
        home.client() as client,
        connected(home.port) as (reader, writer),
        asyncio.timeout(patience(10)),
    ):
        for drop in (b"GET /healthz HTTP/1.1\r\n", b"Host: ", b"local"):
            writer.write(drop)
            await client.get("/healthz")
            clock.advance(HEADER_SECONDS / 3)
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", ["/api/halt", "/api/sessions/main/messages"])
async def test_a_gibibyte_in_chunks_is_refused_in_bounded_memory(path: str):
    """T10: what is too large is not gathered first."""
    async with house() as home:
        before = resident_mb()
        chunk = b"%x\r\n%b\r\n" % (MEBIBYTE, b"x" * MEBIBYTE)
        sent = 0
        async with connected(home.port) as (reader, writer), asyncio.timeout(patience(15)):
            writer.write(head(home, path, "Transfer-Encoding: chunked"))
            try:
                while sent < 1024:
                    writer.write(chunk)
                    await writer.drain()
                    sent += 1
                answer = await reader.read(64)
            except ConnectionError:
                answer = b""
        grown = resident_mb() - before
        async with home.client() as client:
            healthy = await client.get("/healthz")

        assert answer[:12] in (b"", b"HTTP/1.1 413")
        assert sent < 100
        assert grown < 120
        assert healthy.status_code == 200
        assert await stimuli(home) == 0


async def test_a_length_that_is_too_large_is_refused_before_the_body():
    async with house() as home:
        answer = await exchange(
            home.port, head(home, "/api/halt", f"Content-Length: {MEBIBYTE + 1}")
        )

        assert answer.startswith(b"HTTP/1.1 413")


async def test_a_packed_body_is_refused():
    async with house() as home, home.client(home.operator) as client:
        for encoding in ("gzip", "deflate", "br", "identity, gzip"):
            answer = await client.post(
                "/api/sessions/main/messages",
                content=gzip.compress(b'{"text": "a"}'),
                headers={"Content-Encoding": encoding, "Content-Type": "application/json"},
            )
            assert answer.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"text":' + b"[" * 100_000,
        b'{"attachments":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"text": "\\u0061", "attachments": ' + b"[" * 100_000,
        b'{"text": "a"',
        b"\xff\xfe",
        b'{"text": "\xff"}',
        b"",
    ],
)
async def test_json_that_is_deep_or_garbled_is_a_bad_request(body: bytes):
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(
            "/api/sessions/main/messages",
            content=body,
            headers={"Content-Type": "application/json"},
        )

        assert answer.status_code in (400, 422)
        assert await stimuli(home) == 0


async def test_a_lone_surrogate_does_not_have_a_body_read_that_nobody_asked_for():
    """T10: what is mended is still read by its type, and nothing is made of the rest."""
    body = b'{"text": "\\ud800", "x": [' + b"[]," * 4_000_000 + b"[]]}"
    async with house() as home, home.client(await home.token("send")) as client:
        before = resident_mb()
        answer = await client.post(
            "/api/sessions/main/messages",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        grown = resident_mb() - before

    assert (answer.status_code, answer.json()["field"]) == (422, "body")
    assert grown < 150


async def test_a_login_takes_no_more_than_a_code():
    async with house() as home, home.client() as client:
        answer = await client.post("/api/login", json={"code": "x" * 5000})

        assert answer.status_code == 413


async def test_headers_that_are_too_long_are_refused():
    async with house() as home:
        long = b"x" * LARGEST_HEAD
        for request in (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %b\r\n\r\n" % long,
            b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % long,
        ):
            answer = await exchange(home.port, request)
            assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "start",
    [
        HEALTH + b"X: ",
        HEALTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        HEALTH + b"Transfer-Encoding: chunked\r\n\r\n1;",
    ],
    ids=["header", "trailer", "extension"],
)
async def test_a_line_that_never_ends_is_cut_off_at_the_size_of_a_head(start: bytes):
    """T10: what is gathered before a line ends counts, too."""
    async with house() as home, asyncio.timeout(patience(15)):
        before = resident_mb()
        sent = 0
        async with connected(home.port) as (_, writer):
            try:
                writer.write(start)
                while sent < 64 * MEBIBYTE:
                    writer.write(b"x" * MEBIBYTE)
                    await writer.drain()
                    sent += MEBIBYTE
            except ConnectionError:
                pass

        assert sent < 16 * MEBIBYTE
        assert resident_mb() - before < 40


async def test_headers_after_a_body_are_not_taken():
    async with house() as home:
        trailer = b"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n"
        answer = await exchange(
            home.port, head(home, "/api/halt", "Transfer-Encoding: chunked") + trailer
        )

        assert answer.startswith(b"HTTP/1.1 400")
        assert (await home.runtime.store.read("SELECT COUNT(*) FROM halts"))[0][0] == 0


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"),
        (HEALTH + b"Content-Length: 9\r\n\r\n", b"x"),
        (
            b"POST /api/halt HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\n\r\n",
            b"{",
        ),
        (b"GET / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 9\r\n\r\n", b"x"),
    ],
    ids=["blank", "unread", "refused", "foreign"],
)
async def test_a_byte_after_an_answer_keeps_no_connection_open(asked: bytes, then: bytes):
    """T10: whoever was answered has no more time than whoever never asked."""
    clock = ManualClock()
    async with (
        house(clock=clock) as home,
        home.client() as client,
        connected(home.port) as (reader, writer),
        asyncio.timeout(patience(10)),
    ):
        writer.write(asked)
        assert (await reader.read(65536)).startswith(b"HTTP/1.1 ")
        for _ in range(2):
            writer.write(then)
            await client.get("/healthz")  # by its answer the server has seen the byte
            clock.advance(HEADER_SECONDS / 2)

        assert await reader.read() == b""


async def test_one_address_has_only_so_many_connections(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "CONNECTIONS_EACH", 4)
    async with house() as home, asyncio.timeout(patience(15)):
        held = [await asyncio.open_connection("127.0.0.1", home.port) for _ in range(4)]
        for reader, writer in held:  # with something that lasts
            writer.write(head(home, "/api/events").replace(b"POST", b"GET", 1))
            await reader.readuntil(b"\r\n\r\n")
        extra = await exchange(home.port, b"")
        for _, writer in held:
            writer.transport.abort()

        async def is_served() -> bool:
            answer = await exchange(home.port, HEALTH + b"Connection: close\r\n\r\n")
            return answer.startswith(b"HTTP/1.1 200")

        while not await is_served():
            pass

    assert extra.startswith(b"HTTP/1.1 429")


@pytest.mark.parametrize("asked", [b"", HEALTH + b"\r\n", HEALTH + b"\r\n\r\n"])
@pytest.mark.parametrize("limit", ["CONNECTIONS_EACH", "CONNECTIONS"])
async def test_connections_that_ask_for_nothing_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, limit: str, asked: bytes
):
    """T10: of those that never asked or have their answer, the oldest makes room."""
    monkeypatch.setattr(connection, limit, 4)
    async with house() as home, asyncio.timeout(patience(15)):
        held = [await asyncio.open_connection("127.0.0.1", home.port) for _ in range(4)]
        for reader, writer in held:
            writer.write(asked)
            if asked:
                await reader.readuntil(b"\r\n\r\n")
        answers = [
            await exchange(home.port, HEALTH + b"Connection: close\r\n\r\n") for _ in range(8)
        ]
        for _, writer in held:
            writer.transport.abort()

    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200"}


async def test_requests_that_cannot_be_read_leave_no_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
):
    """T16: whoever has no token does not wash away what the log says of others."""
    upgrade = b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with house() as home:
        caplog.clear()
        for host in (b"localhost", b"evil.test"):
            async with connected(home.port) as (reader, writer):
                writer.write(upgrade % host)
                await reader.read(64)
        await exchange(home.port, b"nonsense\r\n\r\n")

    assert [record.message for record in caplog.records if record.levelno >= logging.INFO] == []


async def walked(client: httpx2.AsyncClient, path: str, after: str = "") -> tuple[list[str], int]:
    """Return the ids of a list, page by page, and how large its largest page was."""
    ids: list[str] = []
    largest = 0
    while True:
        answer = await client.get(f"{path}?limit=500{after}")
        largest = max(largest, len(answer.content))
        page = answer.json()
        ids += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return ids, largest
        after = f"&after={page['next']}"


async def test_a_page_is_bounded_by_what_it_holds():
    """T10: who fills a ledger with long texts is not given them all at once."""
    async with house() as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages?wait=10", json={"text": "hi"})
        await client.post("/api/halt", json={})
        for text in ("x" * MEBIBYTE, "ü" * MEBIBYTE):
            for _ in range(5):
                await client.post("/api/sessions/main/messages", json={"text": text})
        stimuli, largest = await walked(client, "/api/stimuli")

        assert len(set(stimuli)) == len(stimuli) == 11
        assert largest < 7 * MEBIBYTE

        def write(tx: Tx) -> None:
            session = sessions.get(tx, "agent:main:main")
            assert session is not None
            lines = [
                NewEntry(
                    id=home.runtime.services.ids.entry(),
                    kind=EntryKind.CUSTOM,
                    body=NoteBody(topic="x", text="x" * MEBIBYTE),
                )
                for _ in range(9)
            ]
            entries.append(tx, session, lines)

        first = (await client.get("/api/sessions/main/entries")).json()["items"][0]["id"]
        await home.runtime.store.transact(write)
        newest = (await client.get("/api/sessions/main/entries?limit=500")).json()
        older = f"/api/sessions/main/entries?limit=500&before={newest['next']}"
        found, largest = await walked(client, "/api/sessions/main/entries", f"&after={first}")

        assert len(newest["items"]) == 4
        assert len((await client.get(older)).json()["items"]) == 4
        assert len(set(found)) == len(found) == 10
        assert largest < 5 * MEBIBYTE


async def test_a_token_that_sends_too_much_at_once_is_told_so_and_nobody_else():
    """What arrives is held in memory: one token must not have all of that."""
    size = LARGEST_MESSAGE - 16
    async with (
        house() as home,
        home.client(home.operator) as client,
        home.client(secret := await home.token("send")) as sender,
        AsyncExitStack() as stack,
        asyncio.timeout(patience(30)),
    ):
        many = [
            await stack.enter_async_context(connected(home.port))
            for _ in range(MOST_ARRIVING // size + 1)
        ]
        begin = head(home, "/api/sessions/api:x/messages", f"Content-Length: {LARGEST_MESSAGE}")
        begin = begin.replace(home.operator.encode(), secret.encode())
        for _, writer in many:
            writer.write(begin + b"x" * size)
        answers = [asyncio.create_task(reader.readline()) for reader, _ in many]
        done, pending = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        operators = await client.post("/api/sessions/main/messages", json={"text": "x" * MEBIBYTE})
        for _, writer in many:
            writer.transport.abort()
        await asyncio.gather(*pending, return_exceptions=True)
        async with asyncio.timeout(patience(10)):
            while (
                await sender.post("/api/sessions/api:x/messages", json={"text": "x" * MEBIBYTE})
            ).status_code != 202:
                pass

    assert [answer.result() for answer in done] == [b"HTTP/1.1 429 Too Many Requests\r\n"]
    assert operators.status_code == 202
