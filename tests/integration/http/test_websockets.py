"""A WebSocket is as guarded as a request, is counted while it is open, and ends when it must."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from tests.integration.http.raw import connected, exchange
from tests.integration.http.serving import PATIENCE_S, House, door_with, house
from tests.integration.http.test_floods import resident_mb
from tests.integration.http.test_guard import logged_in
from tests.waiting import eventually
from wakeful.access.gatekeeper import FAILURES
from wakeful.doors.http import connection, open_streams, sockets
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.endpoint import PUBLIC
from wakeful.doors.http.server import HttpOptions
from wakeful.doors.http.sockets import INTRODUCTION_S, LARGEST_MESSAGE, Socket, SocketCall
from wakeful.doors.http.upgraded import LARGEST_FIRST, SEND_S
from wakeful.vocabulary.clock import ManualClock

TIMES = 100
FEW = 8  # connections of one address, where a test must meet the limit

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


async def echo(call: SocketCall) -> None:
    await call.socket.send_text(f"{call.principal.name} {call.path['room']}")
    async for text in call.socket.iter_text():
        await call.socket.send_text(text)


def token_in(frame: str | bytes) -> str | None:
    try:
        said: Any = json.loads(frame)
        return str(said["token"])
    except (ValueError, KeyError, TypeError):
        return None


def row(
    answer: Callable[[SocketCall], Awaitable[None]] = echo, path: str = "/rooms/{room}"
) -> Socket:
    return Socket(path=path, scope="hub", summary="Talk", answer=answer)


def late_row() -> Socket:
    return Socket(path="/late/{room}", scope="hub", summary="Talk", answer=echo, token_in=token_in)


def door(*more: Socket) -> HttpDoor:
    return door_with(row(), late_row(), *more)


@asynccontextmanager
async def talking(
    home: House, path: str = "/rooms/a", **headers: str
) -> AsyncGenerator[ClientConnection, None]:
    """Open a socket, with headers whose names may have underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = home.url.replace("http:", "ws:") + path
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(
            address,
            additional_headers=named,
            compression=None,
            max_size=None,
            ping_interval=None,
            proxy=None,
        ) as socket,
    ):
        yield socket


def bearer(secret: str) -> str:
    return f"Bearer {secret}"


async def status_of(home: House, path: str, **headers: str) -> int:
    """Return how an upgrade is answered."""
    try:
        async with talking(home, path, **headers):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


async def closing(socket: ClientConnection) -> tuple[int, str]:
    """Read until the end, and return how the server says goodbye."""
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS_EACH", FEW)


async def test_a_socket_talks_with_its_principal():
    async with house(door=door()) as home:
        member = await home.token("hub", name="member")
        async with talking(home, "/rooms/a%2Fb", Authorization=bearer(member)) as socket:
            assert await socket.recv() == "member a/b"
            await socket.send("hello")
            assert await socket.recv() == "hello"


async def test_a_guarded_socket_is_refused_before_the_upgrade():
    """T3: neither a cookie without our origin, nor a token in the address, opens one."""
    async with house(door=door()) as home:
        member, sender = await home.token("hub"), await home.token("send")
        cookie = await logged_in(home)
        refused = {
            "nobody": await status_of(home, "/rooms/a"),
            "empty": await status_of(home, "/rooms/a", Authorization="Bearer"),
            "wrong": await status_of(home, "/rooms/a", Authorization=bearer("x" * 43)),
            "basic": await status_of(home, "/rooms/a", Authorization=f"Basic {member}"),
            "scope": await status_of(home, "/rooms/a", Authorization=bearer(sender)),
            "url": await status_of(home, f"/rooms/a?token={member}"),
            "origin": await status_of(
                home, "/rooms/a", Authorization=bearer(member), Origin="http://evil.test"
            ),
            "null": await status_of(home, "/rooms/a", Cookie=cookie, Origin="null"),
            "cookie": await status_of(home, "/rooms/a", Cookie=cookie),
            "fetched": await status_of(
                home, "/rooms/a", Cookie=cookie, Origin=home.url, Sec_Fetch_Site="cross-site"
            ),
            "stale": await status_of(home, "/rooms/a", Cookie="wakeful=x", Origin=home.url),
        }
        own = await status_of(home, "/rooms/a", Cookie=cookie, Origin=home.url)

    assert refused == {
        "nobody": 401,
        "empty": 401,
        "wrong": 401,
        "basic": 401,
        "scope": 403,
        "url": 400,
        "origin": 403,
        "null": 403,
        "cookie": 403,
        "fetched": 403,
        "stale": 401,
    }
    assert own == 101


async def test_a_foreign_host_gets_no_socket():
    """T4: nor by a socket."""
    async with house(door=door()) as home:
        lines = ["GET /rooms/a HTTP/1.1", "Host: evil.test", *UPGRADE]
        lines += [f"Authorization: {bearer(home.operator)}"]
        answer = await exchange(home.port, "\r\n".join(lines) + "\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 421")


async def test_a_configured_origin_may_open_a_socket():
    options = HttpOptions(port=0, origins=("https://chat.test",))
    async with house(door=HttpDoor(options, others=[row()])) as home:
        cookie = await logged_in(home)

        assert await status_of(home, "/rooms/a", Cookie=cookie, Origin="https://chat.test") == 101


async def test_only_the_paths_of_sockets_are_upgraded():
    async with house(door=door()) as home, home.client(home.operator) as client:
        token = bearer(home.operator)
        plain = await client.get("/rooms/a")
        stranger = await exchange(
            home.port, "GET /rooms/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )

        for path in ("/", "/rooms", "/rooms/a/b", "/rooms/a%2F", "/api/sessions"):
            status = await status_of(home, path, Authorization=token)
            assert (status == 101) == (path == "/rooms/a%2F")
        assert (plain.status_code, plain.json()["code"]) == (426, "upgrade-required")
        assert plain.headers["upgrade"] == "websocket"
        assert stranger.startswith(b"HTTP/1.1 401")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("how", ["closed", "aborted", "refused"])
async def test_a_socket_that_is_gone_is_counted_off(how: str):
    async with house(door=door()) as home:
        token = bearer(home.operator)
        for _ in range(TIMES):
            if how == "refused":
                assert await status_of(home, "/rooms/a", Authorization="Bearer") in (401, 429)
                continue
            async with talking(home, Authorization=token) as socket:
                await socket.recv()
                if how == "aborted":
                    socket.transport.abort()
        async with home.client(home.operator) as client:
            healthy = await client.get("/healthz")

    assert healthy.status_code == 200


@pytest.mark.usefixtures("few")
async def test_open_sockets_count_for_their_address():
    async with house(door=door()) as home, AsyncExitStack() as stack:
        token = bearer(home.operator)
        held = [
            await stack.enter_async_context(talking(home, Authorization=token)) for _ in range(FEW)
        ]
        full = await exchange(home.port, "")
        await held[0].close()

        assert full.startswith(b"HTTP/1.1 429")
        await eventually_served(home)


async def eventually_served(home: House) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await status_of_or_none(home) != 101:
            pass


async def status_of_or_none(home: House) -> int | None:
    try:
        return await status_of(home, "/rooms/a", Authorization=bearer(home.operator))
    except (InvalidHandshake, OSError):
        return None


async def test_open_sockets_count_for_their_credential(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "LASTING_EACH", 2)
    async with house(door=door()) as home, AsyncExitStack() as stack:
        member, other = await home.token("hub", name="a"), await home.token("hub", name="b")
        held = [
            await stack.enter_async_context(talking(home, Authorization=bearer(member)))
            for _ in range(2)
        ]
        for socket in held:
            await socket.recv()
        full = await status_of(home, "/rooms/a", Authorization=bearer(member))
        others = await status_of(home, "/rooms/a", Authorization=bearer(other))
        async with talking(home, "/late/a") as late:
            await late.send(json.dumps({"token": member}))
            told = await closing(late)
        await held[0].close()
        await eventually(lambda: open_sockets(home) == 1)
        again = await status_of(home, "/rooms/a", Authorization=bearer(member))

    assert (full, others, again) == (429, 101, 101)
    assert told == (1008, "Too many requests")


def open_sockets(home: House) -> float:
    return home.runtime.metrics.registry.get_sample_value("wakeful_http_lasting") or 0.0


async def test_a_first_frame_may_bring_the_token():
    async with house(door=door()) as home:
        member = await home.token("hub", name="member")
        async with talking(home, "/late/a") as socket:
            await socket.send(json.dumps({"token": member}))
            assert await socket.recv() == "member a"
        async with talking(home, "/late/a", Authorization=bearer(member)) as socket:
            assert await socket.recv() == "member a"


@pytest.mark.parametrize("frame", ['{"token": "wrong"}', "{", b"\xff", "[]", '{"token": null}', ""])
async def test_a_first_frame_without_a_token_ends_the_socket(frame: str | bytes):
    async with house(door=door()) as home, talking(home, "/late/a") as socket:
        await socket.send(frame)

        assert await closing(socket) == (1008, "A valid token is needed")


async def test_a_token_of_another_scope_in_a_first_frame_ends_the_socket():
    async with house(door=door()) as home, talking(home, "/late/a") as socket:
        await socket.send(json.dumps({"token": await home.token("send")}))

        assert await closing(socket) == (1008, "The token does not allow this")


async def test_wrong_tokens_in_first_frames_count_as_all_others_do():
    async with house(door=door()) as home, home.client("wrong") as stranger:
        for _ in range(FAILURES):
            async with talking(home, "/late/a") as socket:
                await socket.send('{"token": "wrong"}')
                await closing(socket)

        assert (await stranger.get("/api/sessions")).status_code == 429


async def test_a_wrong_credential_is_not_asked_again_in_a_first_frame():
    async with house(door=door()) as home:
        for headers in ({"Authorization": bearer("wrong")}, {"Cookie": "wakeful=wrong"}):
            assert await status_of(home, "/late/a", Origin=home.url, **headers) == 401
        assert await status_of(home, "/late/a", Origin="http://evil.test") == 403


async def test_whoever_says_nothing_is_sent_away_after_a_while():
    """T3: whoever may introduce themselves later has little time for it."""
    clock = ManualClock()
    async with house(door=door(), clock=clock) as home, talking(home, "/late/a") as socket:
        clock.advance(INTRODUCTION_S)

        assert await closing(socket) == (1008, "The request took too long to arrive")


async def test_sockets_of_nobody_are_few_and_others_are_served(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sockets, "UNKNOWN_EACH", 3)
    clock = ManualClock()
    async with house(door=door(), clock=clock) as home, AsyncExitStack() as stack:
        token = bearer(home.operator)
        silent = [await stack.enter_async_context(talking(home, "/late/a")) for _ in range(3)]
        too_many = await status_of(home, "/late/a")
        known = await status_of(home, "/late/a", Authorization=token)
        clock.advance(INTRODUCTION_S)
        for socket in silent:
            await closing(socket)
        again = await status_of(home, "/late/a")

    assert (too_many, known, again) == (429, 101, 101)


async def test_a_thousand_idle_sockets_keep_nobody_out():
    """T3: those who have not said who they are are few."""
    limit = asyncio.timeout(3 * PATIENCE_S)  # a thousand handshakes are work
    async with house(door=door()) as home, AsyncExitStack() as stack, limit:
        head = "\r\n".join(["GET /late/a HTTP/1.1", "Host: localhost", *UPGRADE]) + "\r\n\r\n"
        for _ in range(1000):
            _, writer = await stack.enter_async_context(connected(home.port))
            writer.write(head.encode())
        async with home.client(home.operator) as client:
            healthy = await client.get("/healthz")

    assert healthy.status_code == 200


async def test_a_revoked_token_ends_its_sockets_at_once():
    """T8: a socket knows whose it is for as long as it lives."""
    async with house(door=door()) as home:
        member = await home.token("hub", name="member")
        async with talking(home, Authorization=bearer(member)) as socket:
            await socket.recv()
            await home.runtime.credentials.revoke("member", by="test")

            assert await closing(socket) == (1008, "The token is gone")


async def test_a_server_that_stops_says_so_to_its_sockets():
    async with (
        asyncio.TaskGroup() as group,
        AsyncExitStack() as stack,
        house(door=door()) as home,
    ):
        token = bearer(home.operator)
        socket = await stack.enter_async_context(talking(home, Authorization=token))
        await socket.recv()
        told = group.create_task(closing(socket))

    assert told.result()[0] == 1012


async def test_a_socket_whose_row_breaks_is_closed_and_the_server_goes_on():
    async def broken(call: SocketCall) -> None:
        raise ValueError("broken")

    async def done(call: SocketCall) -> None:
        return

    async with house(door=door(row(broken, "/broken"), row(done, "/done"))) as home:
        token = bearer(home.operator)
        for path, code in (("/broken", 1011), ("/done", 1000)):
            async with talking(home, path, Authorization=token) as socket:
                assert await closing(socket) == (code, "")
        assert await status_of(home, "/rooms/a", Authorization=token) == 101


async def test_messages_have_a_size_and_a_small_one_before_their_sender_is_known():
    async with house(door=door()) as home:
        async with talking(home, "/late/a") as socket:
            await socket.send(json.dumps({"token": home.operator, "x": "x" * LARGEST_FIRST}))
            assert (await closing(socket))[0] == 1009
        async with talking(home, Authorization=bearer(home.operator)) as socket:
            await socket.recv()
            await socket.send("x" * LARGEST_MESSAGE)
            assert len(await socket.recv()) == LARGEST_MESSAGE
            await socket.send("x" * (LARGEST_MESSAGE + 1))
            assert (await closing(socket))[0] == 1009


@asynccontextmanager
async def deaf(home: House, path: str) -> AsyncGenerator[asyncio.StreamWriter, None]:
    """Open a socket and read nothing of what comes over it."""
    head = [f"GET {path} HTTP/1.1", "Host: localhost", *UPGRADE]
    head += [f"Authorization: {bearer(home.operator)}"]
    async with connected(home.port) as (reader, writer):
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        cast("asyncio.Transport", writer.transport).pause_reading()
        yield writer


async def test_a_reader_that_takes_nothing_is_cut_off():
    async def flood(call: SocketCall) -> None:
        while True:
            await call.socket.send_bytes(b"x" * 65536)

    clock = ManualClock()
    async with (
        house(door=door(row(flood, "/flood")), clock=clock) as home,
        home.client() as client,
        deaf(home, "/flood"),
        asyncio.timeout(PATIENCE_S),
    ):
        while open_sockets(home):
            clock.advance(SEND_S)
            await client.get("/healthz")


async def test_pings_of_whoever_does_not_read_fill_no_memory():
    pings = (b"\x89\xfd\x00\x00\x00\x00" + b"x" * 125) * 4000
    async with house(door=door()) as home, deaf(home, "/rooms/a") as writer:
        before = resident_mb()
        for _ in range(50):
            writer.write(pings)
            await writer.drain()
        grown = resident_mb() - before
        async with home.client() as client:
            healthy = await client.get("/healthz")

    assert grown < 10
    assert healthy.status_code == 200


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "more",
    [
        ["X: " + "x" * 20_000],
        [f"X-{number}: x" for number in range(200)],
        ["Sec-WebSocket-Version: 12"],
        ["Sec-WebSocket-Key: short"],
    ],
)
async def test_an_upgrade_that_cannot_be_read_is_refused_and_not_held(more: list[str]):
    async with house(door=door()) as home:
        token = f"Authorization: {bearer(home.operator)}"
        lines = ["GET /rooms/a HTTP/1.1", "Host: localhost", *UPGRADE, token, *more]
        for _ in range(FEW * 2):
            answer = await exchange(home.port, "\r\n".join(lines) + "\r\n\r\n")
            assert answer.split(b" ")[1] in (b"400", b"426", b"431")


async def test_an_upgrade_behind_an_unanswered_request_is_refused():
    async with house(door=door()) as home, connected(home.port) as (reader, writer):
        token = f"Authorization: {bearer(home.operator)}\r\nHost: localhost\r\n"
        upgrade = "\r\n".join(["GET /rooms/a HTTP/1.1", *UPGRADE]) + f"\r\n{token}\r\n"
        writer.write(f"GET /api/sleeps HTTP/1.1\r\n{token}\r\n{upgrade}".encode())
        async with asyncio.timeout(PATIENCE_S):
            first = await reader.readuntil(b'{"items":[],"next":null}')
            second = await reader.readuntil(b"\r\n\r\n")

    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 426")


def test_a_socket_is_never_open_to_strangers():
    with pytest.raises(ValueError, match="needs a scope"):
        Socket(path="/x", scope=PUBLIC, summary="s", answer=echo)


async def test_a_socket_is_counted_and_stands_in_the_document():
    async with house(door=door()) as home, home.client(home.operator) as client:
        await status_of(home, "/rooms/a", Authorization=bearer(home.operator))
        document = (await client.get("/openapi.json")).json()
        labels = {"method": "WEBSOCKET", "route": "/rooms/{room}", "status": "101"}
        counted = home.runtime.metrics.registry.get_sample_value(
            "wakeful_http_requests_total", labels
        )

    assert document["paths"]["/rooms/{room}"] == {
        "summary": "Talk",
        "x-method": "WEBSOCKET",
        "x-scope": "hub",
    }
    assert counted == 1
