"""The guard lets nobody in who should not come in."""

import asyncio
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from starlette.types import ASGIApp

from tests.integration.http.raw import exchange
from tests.integration.http.serving import House, door_with, house
from wakeful.access.gatekeeper import FAILURES
from wakeful.doors.http.endpoint import ANY_METHOD, SOCKET, Row
from wakeful.doors.http.mounts import Mount
from wakeful.doors.http.server import HttpOptions
from wakeful.doors.http.sockets import Socket, SocketCall
from wakeful.settings.settings import Settings
from wakeful.store.sqlite import BUSY_TIMEOUT_S
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import Permanent

# A new route that the guard opens to strangers must be added here by hand, or this test fails.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("POST", "/api/login"),
    ("GET", "/"),
    ("GET", "/activity.js"),
    ("GET", "/agents.js"),
    ("GET", "/automations.js"),
    ("GET", "/home.js"),
    ("GET", "/home.css"),
    ("GET", "/icon.svg"),
}
SIGNED = {("POST", "/hooks/{name}")}
# WebSockets whose first frame may bring the credential.
LATE: set[tuple[str, str]] = set()
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def filled(path: str) -> str:
    return re.sub(r"\{\w+\}", "api:x", path)


async def statuses(home: House, headers: Mapping[str, str]) -> dict[tuple[str, str], int]:
    """Ask every method of every path of the table."""
    found: dict[tuple[str, str], int] = {}
    async with home.client() as client:
        for path in sorted({row.path for row in home.table}):
            for method in METHODS:
                answer = await client.request(method, filled(path), headers=headers)
                found[method, path] = answer.status_code
        for row in home.table:
            if row.method == ANY_METHOD:
                answer = await client.get(f"{filled(row.path)}/below", headers=headers)
            elif row.method == SOCKET:
                answer = await client.get(filled(row.path), headers=dict(headers) | UPGRADE)
            else:
                continue
            found[row.method, row.path] = answer.status_code
    return found


def nothing() -> AbstractAsyncContextManager[ASGIApp]:
    raise AssertionError("nobody may come so far")


async def silence(call: SocketCall) -> None:
    raise AssertionError("nobody may come so far")


# What the table can hold beside endpoints.
OTHERS = (
    Mount(path="/app", scope="any", summary="s", make=nothing),
    Socket(path="/talk/{room}", scope="hub", summary="s", answer=silence),
)


@pytest.mark.parametrize("token", ["none", "empty", "wrong", "expired", "revoked", "basic"])
async def test_no_route_but_the_public_ones_answers_without_a_valid_token(token: str):
    """T1: every route of the app's own table is tried, with no, empty, wrong and expired tokens."""
    clock = ManualClock()
    async with house(clock=clock, door=door_with(*OTHERS)) as home:
        headers: dict[str, str] = {}
        match token:
            case "none":
                pass
            case "empty":
                headers = {"Authorization": "Bearer"}
            case "wrong":
                headers = {"Authorization": "Bearer " + "x" * 43}
            case "basic":
                headers = {"Authorization": f"Basic {home.operator}"}
            case "expired":
                secret = await home.token("operator", name="t", expires_at=clock.now() + 1000)
                clock.advance(2)
                headers = {"Authorization": f"Bearer {secret}"}
            case _:
                secret = await home.token("operator", name="t")
                await home.runtime.credentials.revoke("t", by="test")
                headers = {"Authorization": f"Bearer {secret}"}
        found = await statuses(home, headers)

        opened = {(row.method, row.path) for row in home.table if row.is_open}
        later = {(row.method, row.path) for row in home.table if row.may_introduce_later}
        assert (opened, later) == (OPEN | SIGNED, LATE)
        let_in = {place for place, status in found.items() if status not in (401, 429)}
        assert let_in == OPEN | {("HEAD", path) for method, path in OPEN if method == "GET"}
        assert found["GET", "/healthz"] == found["GET", "/readyz"] == 200


async def test_unknown_paths_look_like_any_other_to_strangers():
    async with house() as home, home.client() as client:
        assert (await client.get("/nonsense")).status_code == 401
        assert (await client.get("/api/healthz")).status_code == 401
        assert (await client.get("/api%2Flogin")).status_code == 401
        assert (await client.get("/healthz/")).status_code == 401


async def test_a_path_is_as_public_as_the_row_it_leads_to_however_it_is_spelled():
    async with house() as home, home.client() as client:
        assert (await client.get("/%68ealthz")).status_code == 200
        assert (await client.get("/%61pi/sessions")).status_code == 401


async def test_unknown_paths_and_methods_are_problems():
    async with house() as home, home.client(home.operator) as client:
        missing = await client.get("/nonsense")
        wrong = await client.put("/api/sessions")

        assert (missing.status_code, missing.json()["code"]) == (404, "not-found")
        assert (wrong.status_code, wrong.json()["code"]) == (405, "method-not-allowed")
        assert wrong.headers["allow"] == "GET"
        assert (await client.head("/api/sessions")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1;host=localhost;proto=https"},
        {"X-Forwarded-For": "::ffff:127.0.0.1", "X-Forwarded-Host": "localhost"},
        {"X-Forwarded-User": "operator", "X-Remote-User": "operator"},
    ],
)
async def test_forged_proxy_headers_grant_nothing(headers: dict[str, str]):
    """T2: where somebody says he comes from makes him nobody else."""
    async with house() as home, home.client(headers=headers) as client:
        assert (await client.get("/api/sessions")).status_code == 401


async def test_another_address_needs_a_token_before_it_is_opened():
    """T2: nothing but this machine is served without a token of at least 128 bits."""
    with pytest.raises(Permanent, match="needs a token"):
        async with house(options=HttpOptions(host="0.0.0.0", port=0)):
            pass


@pytest.mark.parametrize(
    "host",
    ["evil.test", "127.0.0.1.evil.test", "evil@127.0.0.1", "localhost.", "[::1]x", "", "127.1"],
)
async def test_a_foreign_host_is_not_served(host: str):
    """T4: a name that was made to point here is not ours."""
    async with house() as home:
        for path in ("/healthz", "/api/events", "/api/sessions"):
            answer = await exchange(
                home.port,
                f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {home.operator}"
                "\r\nConnection: close\r\n\r\n",
            )
            assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://evil.test/api/sessions", 421),
        ("http://127.0.0.1@evil.test/api/sessions", 421),
        ("http://127.0.0.1/api/sessions", 200),
        ("/api/sessions?after=http://evil.test", 422),
        ("/http://evil.test", 404),
    ],
)
async def test_an_address_that_is_written_out_names_the_host_that_is_asked(
    target: str, status: int
):
    """T4: what a proxy would have sent elsewhere is not served here."""
    async with house() as home:
        answer = await exchange(
            home.port,
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {home.operator}\r\nConnection: close\r\n\r\n",
        )

    assert answer.startswith(b"HTTP/1.1 %d" % status)


async def test_two_host_headers_are_refused():
    async with house() as home:
        answer = await exchange(
            home.port,
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n"
            "Connection: close\r\n\r\n",
        )

        assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


async def logged_in(home: House) -> str:
    """Return the cookie of a console."""
    (token,) = [
        token
        for token in await home.runtime.credentials.every()
        if "operator" in token.scopes and token.revoked_at is None
    ]
    code = await home.runtime.credentials.login_code(token.id)
    async with home.client() as client:
        answer = await client.post("/api/login", json={"code": code})
        again = await client.post("/api/login", json={"code": code})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert again.status_code == 401
    return cookie.partition(";")[0]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"text=a", 415),
        ({"Content-Type": "text/plain"}, b'{"text": "a"}', 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--", 403),
        ({"Content-Type": "multipart/form-data; boundary=x", "Origin": "null"}, b"--x--", 403),
        ({}, b'{"text": "a"}', 415),
        ({"Content-Type": "application/json"}, b'{"text": "a"}', 403),
        ({"Content-Type": "application/json", "Origin": "http://evil.test"}, b"{}", 403),
        ({"Content-Type": "application/json", "Origin": "null"}, b"{}", 403),
        ({"Content-Type": "application/json", "Origin": "http://127.0.0.1:1"}, b"{}", 403),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, b"{}", 403),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "same-site"}, b"{}", 403),
        ({"Content-Type": "application/json", "Authorization": "Basic eDp5"}, b"{}", 403),
    ],
)
async def test_what_another_site_can_send_with_the_cookie_is_refused(
    headers: dict[str, str], body: bytes, status: int
):
    """T5: a cookie alone acts for nobody."""
    async with house() as home:
        cookie = await logged_in(home)
        async with home.client(headers={"Cookie": cookie}) as client:
            answer = await client.post("/api/sessions/main/messages", content=body, headers=headers)

            assert answer.status_code == status
            assert ("Content-Type: application/json" in answer.text) == (status == 415)
            assert await home.runtime.store.read("SELECT id FROM stimuli") == []


async def test_a_console_may_use_its_cookie_from_its_own_page():
    async with house() as home:
        cookie = await logged_in(home)
        async with home.client(headers={"Cookie": cookie}) as client:
            sent = await client.post(
                "/api/sessions/main/messages", json={"text": "a"}, headers={"Origin": home.url}
            )
            read = await client.get("/api/sessions")
            foreign = await client.get("/api/events", headers={"Origin": "http://evil.test"})

            assert (sent.status_code, read.status_code, foreign.status_code) == (202, 200, 403)
            assert "access-control-allow-origin" not in read.headers


async def test_a_token_in_the_address_is_refused():
    """T6: an address is written into logs and histories."""
    async with house() as home, home.client(home.operator) as client:
        for name in ("token", "access_token", "Authorization", "API_KEY", "code"):
            answer = await client.get(f"/api/sessions?{name}=x")
            assert (answer.status_code, answer.json()["code"]) == (400, "token-in-url")
        for query in (f"key={home.operator}", f"q=%20{home.operator}", f"{home.operator}=1"):
            answer = await client.get(f"/api/search?{query}")
            assert (answer.status_code, answer.json()["code"]) == (400, "token-in-url")
        assert (await client.get("/api/search?q=wk_is_a_prefix")).status_code == 200


async def test_a_token_never_ends_beyond_the_calendar():
    async with house() as home, home.client(home.operator) as client:
        for time in (
            "9999-12-31T23:59:59-23:59",
            "9999-12-31T23:59:59.9999Z",
            "0001-01-01T00:00:00Z",
        ):
            body = {"name": "n", "scopes": ["read"], "expires_at": time}
            answer = await client.post("/api/tokens", json=body)
            assert (answer.status_code, answer.json()["field"]) == (422, "expires_at")
        await home.runtime.store.transact(
            lambda tx: tx.run("UPDATE tokens SET expires_at = :at", at=2**62)
        )

        assert (await client.get("/api/tokens")).status_code == 200


async def test_too_many_wrong_tokens_must_wait_and_a_right_one_passes_all_the_same():
    """T7: guessing is slow, and costs nobody else anything."""
    clock = ManualClock()
    async with (
        house(clock=clock) as home,
        home.client("wrong") as stranger,
        home.client(home.operator) as operator,
    ):
        answers = [await stranger.get("/api/sessions") for _ in range(FAILURES + 1)]
        right = await operator.get("/api/sessions")
        still = await stranger.get("/api/sessions")
        clock.advance(61)
        later = await stranger.get("/api/sessions")

    assert [answer.status_code for answer in answers] == [401] * FAILURES + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert right.status_code == 200
    assert still.status_code == 429
    assert later.status_code == 401


async def test_a_wrong_method_does_not_count_as_a_wrong_token():
    async with house() as home, home.client(home.operator) as client:
        for _ in range(FAILURES + 5):
            assert (await client.put("/api/sessions")).status_code == 405
        async with home.client("wrong") as stranger:
            assert (await stranger.get("/api/sessions")).status_code == 401


def body_of(row: Row) -> Any:
    return {"name": "x", "scopes": ["read"]} if row.path == "/api/tokens" else {}


async def refused(home: House, token: str, scope: str, *, hidden: bool = False) -> set[int]:
    """Return how a token is answered by every route that needs a scope, or hides itself."""
    async with home.client(token) as client:
        return {
            (await client.request(row.method, filled(row.path), json=body_of(row))).status_code
            for row in home.table
            if row.scope == scope and row.is_hidden is hidden
        }


async def test_a_reader_may_not_administer():
    """T23: reading is no right to act."""
    async with house() as home:
        reader, sender = await home.token("read"), await home.token("send")

        assert await refused(home, reader, "operator") == {403}
        assert await refused(home, sender, "operator") == {403}
        assert await refused(home, reader, "operator", hidden=True) == {404}
        assert await refused(home, reader, "send") == {403}
        assert len([row for row in home.table if row.scope == "operator"]) == 18
        rows = await home.runtime.store.read("SELECT action FROM audit WHERE who <> 'test'")
        assert rows == []


async def test_halts_by_command_deletions_and_imports_are_audited():
    """T23: whatever way an act took, its row is there."""
    async with house() as home, home.client(home.operator) as client:
        for text in ("/halt", "/resume main"):
            await client.post("/api/sessions/main/messages", json={"text": text})
        await client.post("/api/sessions/main/messages", json={"text": "hi"})
        file = (await client.get("/api/sessions/main/export")).content
        for query in ("session=copy", "session=tried&dry_run=true"):
            await client.post(
                f"/api/sessions/import?{query}",
                content=file,
                headers={"Content-Type": "application/x-ndjson"},
            )
        await client.delete("/api/sessions/copy")
        await client.delete("/api/sessions/unknown")
        await client.post(
            "/api/sessions/import?session=broken",
            content=b"nothing",
            headers={"Content-Type": "application/x-ndjson"},
        )
        await home.runtime.halt("main")
        await home.runtime.resume("main")
        await home.runtime.delete("main")

        rows = await home.runtime.store.read(
            "SELECT who, action, target FROM audit WHERE who <> 'test' ORDER BY id"
        )
        assert [tuple(row) for row in rows] == [
            ("the operator", "halt", "*"),
            ("the operator", "resume", "main"),
            ("the operator", "sessions.import", "agent:main:copy"),
            ("the operator", "sessions.delete", "agent:main:copy"),
            ("operator", "halt", "main"),
            ("operator", "resume", "main"),
            ("operator", "sessions.delete", "agent:main:main"),
        ]


async def test_an_act_of_the_operator_is_audited():
    async with house() as home, home.client(home.operator) as client:
        made = await client.post("/api/tokens", json={"name": "n", "scopes": ["read"]})
        await client.post("/api/halt", json={})
        await client.post("/api/resume", json={"agent": "main"})
        await client.delete("/api/tokens/n")

        rows = await home.runtime.store.read(
            "SELECT who, action, target FROM audit WHERE who <> 'test' ORDER BY id"
        )
        assert [tuple(row) for row in rows] == [
            ("the operator", "tokens.add", "n"),
            ("the operator", "halt", "*"),
            ("the operator", "resume", "main"),
            ("the operator", "tokens.revoke", "n"),
        ]
        secret = made.json()["token"]
        async with home.client(secret) as revoked:
            assert (await revoked.get("/api/sessions")).status_code == 401
        assert secret not in (await client.get("/api/tokens")).text


async def test_answers_carry_the_headers_that_browsers_obey():
    async with house() as home, home.client(home.operator) as client:
        for path in ("/api/sessions", "/nonsense", "/docs", "/", "/home.js"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["referrer-policy"] == "no-referrer"
            policy = headers["content-security-policy"].split("; ")
            assert {"default-src 'self'", "frame-ancestors 'none'"} <= set(policy)


_watched: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watched and isinstance(arguments[0], str | bytes):
        _watched[-1].append(str(arguments[0]))


sys.addaudithook(_watch)  # for good: Python has no way to take one back


@contextmanager
def files_opened() -> Generator[list[str], None, None]:
    """Collect the names of the files that Python opens meanwhile."""
    _watched.append([])
    try:
        yield _watched[-1]
    finally:
        _watched.pop()


@pytest.mark.parametrize(
    "word",
    [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "%252e%252e%252f",
        "a%00b",
        "%c0%ae%c0%ae",
        "%ff",
        "CON",
        "%EF%BC%8E%EF%BC%8E%EF%BC%8F",
        "%2Fetc%2Fpasswd",
        "a%0d%0ab",
        "~2e~2e~2f" * 10,
    ],
)
async def test_a_hostile_name_in_a_path_is_only_a_name(word: str):
    async with house() as home:
        head = f"Host: localhost\r\nAuthorization: Bearer {home.operator}\r\nConnection: close"
        body = '{"text": "a"}'
        with files_opened() as opened:
            for path in (
                f"/api/sessions/{word}",
                f"/api/turns/{word}",
                f"/docs/{word}",
                f"/{word}",
            ):
                answer = await exchange(home.port, f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n")
                assert answer.split(b" ")[1] in (b"400", b"404", b"422")
            answer = await exchange(
                home.port,
                f"POST /api/sessions/{word}/messages HTTP/1.1\r\n{head}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}",
            )

        assert answer.split(b" ")[1] in (b"202", b"400", b"404", b"422")
        assert opened == []


async def test_readiness_is_a_commit():
    async with house() as home, home.client() as client:
        await asyncio.gather(client.get("/readyz"), client.get("/healthz"))
        rows = await home.runtime.store.read("SELECT COUNT(*) FROM readiness")

        assert rows[0][0] == 1


async def test_problems_are_documents_of_their_kind():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.get("/api/stimuli?limit=x")

        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(msgspec.json.decode(answer.content)) == {
            "type",
            "title",
            "status",
            "code",
            "detail",
            "field",
        }


async def test_whoever_only_looks_gets_in_while_nobody_can_write(tmp_path: Path):
    async with house(settings=Settings(home=tmp_path / "home", drain_s=1)) as home:
        other: Any = apsw.Connection(str(tmp_path / "home" / "wakeful.db"))
        other.execute("BEGIN IMMEDIATE")
        async with home.client(home.operator) as known, home.client("wk_" + "x" * 43) as unknown:
            async with asyncio.timeout(BUSY_TIMEOUT_S / 2):
                seen, refused = await known.get("/api/sessions"), await unknown.get("/api/sessions")
        other.execute("ROLLBACK")
        other.close()

    assert (seen.status_code, refused.status_code) == (200, 401)


async def test_a_database_that_takes_no_commit_is_not_ready_but_alive(tmp_path: Path):
    async with house(settings=Settings(home=tmp_path / "home", drain_s=1)) as home:
        # The same library as the store's: locks of one process do not part two libraries.
        other: Any = apsw.Connection(str(tmp_path / "home" / "wakeful.db"))
        other.execute("BEGIN IMMEDIATE")
        async with home.client() as client:
            ready, alive = await client.get("/readyz"), await client.get("/healthz")
            other.execute("ROLLBACK")
            other.close()
            again = await client.get("/readyz")

    assert (ready.status_code, ready.json()["code"]) == (503, "unavailable")
    assert int(ready.headers["retry-after"]) >= 1
    assert alive.status_code == 200
    assert again.status_code == 200
