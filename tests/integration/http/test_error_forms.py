"""Below the prefix of another protocol errors are told as that protocol does, whoever raises."""

import re
from collections.abc import Callable

import msgspec
import pytest
from starlette.responses import Response

from tests.integration.http.raw import connected, exchange
from tests.integration.http.serving import House, door_with, house
from wakeful.access.gatekeeper import FAILURES
from wakeful.doors.http import connection
from wakeful.doors.http.connection import HEADER_SECONDS, LARGEST_HEAD
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.problems import Problem
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.record import Record

JSON = "Content-Type: application/json"


class Said(Given):
    """A body."""

    n: int


class Done(Record):
    """An answer."""

    n: int


def form(name: str) -> Callable[[Problem], Response]:
    def write(problem: Problem) -> Response:
        body = msgspec.json.encode({"error": {"in": name, "code": problem.code}})
        return Response(body, status_code=problem.status, media_type="application/json")

    return write


async def answer(call: Call[Nothing, Said]) -> Done:
    if call.body.n:
        raise ValueError("secret words")
    return Done(n=0)


def forms() -> HttpDoor:
    row = Endpoint(
        method="POST",
        path="/v1/chat",
        scope="send",
        summary="s",
        answer=answer,
        body=Said,
        returns={200: Done},
    )
    return door_with(row, error_forms={"/v1": form("v1"), "/v1/chat/own": form("own")})


async def told(home: House, head: str, *headers: str, body: str = "") -> tuple[int, str, bytes]:
    """Return the status, the head and the body of an answer to bytes."""
    lines = [head, "Host: localhost", "Connection: close", *headers]
    lines += [f"Content-Length: {len(body)}"] if body else []
    raw = await exchange(home.port, "\r\n".join(lines) + "\r\n\r\n" + body)
    before, _, after = raw.partition(b"\r\n\r\n")
    return int(before.split()[1]), before.decode().lower(), after


@pytest.mark.parametrize(
    ("request_line", "headers", "body", "status"),
    [
        ("GET /v1/models", (), "", 401),
        ("GET /v1", (), "", 401),
        ("GET /v1/models", ("Authorization: Bearer {operator}",), "", 404),
        ("GET /v1/chat", ("Authorization: Bearer {operator}",), "", 405),
        ("GET /%76%31/models", ("Authorization: Bearer {operator}",), "", 404),
        ("POST /v1/chat", (JSON, "Content-Length: 9999999"), "", 413),
        ("POST /v1/chat", ("Content-Type: text/plain",), "x", 415),
        ("POST /v1/chat", (JSON, "Content-Encoding: gzip"), "x", 415),
        ("POST /v1/chat?token=x", (JSON,), "{}", 400),
        ("POST /v1/chat", (JSON, "Authorization: Bearer {operator}"), "{", 400),
        ("POST /v1/chat", (JSON, "Authorization: Bearer {operator}"), "{}", 422),
        ("POST /v1/chat", (JSON, "Authorization: Bearer {operator}"), '{"n": 1}', 500),
        ("POST /v1/chat", (JSON, "Authorization: Bearer {reader}"), '{"n": 0}', 403),
        ("POST /v1/chat", (JSON, "Origin: http://evil.test"), "{}", 401),
        (f"GET /v1/{'x' * LARGEST_HEAD}", (), "", 431),
    ],
)
async def test_every_error_below_a_prefix_has_its_form(
    request_line: str, headers: tuple[str, ...], body: str, status: int
):
    async with house(door=forms()) as home:
        names = {"operator": home.operator, "reader": await home.token("read")}
        known = [header.format(**names) for header in headers]
        got, head, raw = await told(home, f"{request_line} HTTP/1.1", *known, body=body)

    assert got == status
    assert "content-type: application/json\r\n" in f"{head}\r\n"
    assert msgspec.json.decode(raw)["error"]["in"] == "v1"
    assert b"secret words" not in raw
    assert len(re.findall("^cache-control: no-store\r?$", head, re.M)) == 1
    assert ("www-authenticate: bearer" in head) == (status == 401)
    assert ("allow: post" in head) == (status == 405)


async def test_the_longest_prefix_wins_and_others_tell_problems():
    async with house(door=forms()) as home:
        _, _, own = await told(home, "GET /v1/chat/own/x HTTP/1.1")
        _, _, near = await told(home, "GET /v1/chat/owner HTTP/1.1")
        _, head, other = await told(home, "GET /v11 HTTP/1.1")

    assert msgspec.json.decode(own)["error"]["in"] == "own"
    assert msgspec.json.decode(near)["error"]["in"] == "v1"
    assert msgspec.json.decode(other)["code"] == "unauthorized"
    assert "content-type: application/problem+json" in head


async def test_too_many_wrong_tokens_are_told_in_the_form_with_the_time_to_wait():
    async with house(door=forms()) as home, home.client("wrong") as client:
        answers = [await client.get("/v1/models") for _ in range(FAILURES + 1)]

    assert answers[-1].status_code == 429
    assert answers[-1].json()["error"] == {"in": "v1", "code": "too-many-requests"}
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_headers_that_come_too_late_are_refused_in_the_form_of_the_path_that_came():
    clock = ManualClock()
    async with (
        house(door=forms(), clock=clock) as home,
        home.client() as client,
        connected(home.port) as (reader, writer),
    ):
        writer.write(b"GET /v1/models HTTP/1.1\r\nHost: local")
        await client.get("/healthz")  # by its answer the server has seen the beginning
        clock.advance(HEADER_SECONDS)
        raw = await reader.read()

    assert raw.startswith(b"HTTP/1.1 408")
    assert msgspec.json.decode(raw.partition(b"\r\n\r\n")[2])["error"]["code"] == "timeout"


async def test_a_connection_too_many_is_refused_before_its_path_is_known(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection, "CONNECTIONS_EACH", 0)
    async with house(door=forms()) as home:
        raw = await exchange(home.port, "")

    assert raw.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 1" in raw.lower()
    assert msgspec.json.decode(raw.partition(b"\r\n\r\n")[2])["code"] == "too-many-requests"
