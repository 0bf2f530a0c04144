"""What other doors may put into the table: signed rows, raw bodies, scopes of a kind."""

import gzip
import hmac
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest
from starlette.types import Scope

from tests.integration.http.raw import connected, exchange
from tests.integration.http.serving import door_with, house
from tests.integration.http.test_guard import OPEN, SIGNED
from wakeful.doors.http.endpoint import (
    ANY_TYPE,
    ANYBODY,
    PUBLIC,
    Call,
    Endpoint,
    Nothing,
)
from wakeful.doors.http.endpoint import (
    SIGNED as SIGNED_SCOPE,
)
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.table import Table
from wakeful.vocabulary.record import Record

KEY = b"a secret of two"
SMALL = 1000  # bytes


class Taken(Record):
    """What a hook tells."""

    name: str
    length: int


@dataclass
class Hook:
    """A signed row, as a webhook is."""

    most: int = 1
    at_once: int = 0
    refused: int = 0
    proofs: list[bytes] = field(default_factory=list[bytes])

    def row(self, *media_types: str) -> Endpoint:
        return Endpoint(
            method="POST",
            path="/signed/{name}",
            scope=SIGNED_SCOPE,
            summary="Take what somebody has signed",
            answer=self.answer,
            body=bytes,
            media_types=media_types or (ANY_TYPE,),
            returns={200: Taken},
            largest_body=SMALL,
            admit=self.admit,
        )

    def admit(self, scope: Scope, path: Mapping[str, str]) -> AbstractContextManager[object]:
        return self._admitted()

    @contextmanager
    def _admitted(self) -> Generator[None, None, None]:
        if self.at_once >= self.most:
            self.refused += 1
            raise Problem("too-many-requests", "too many at once", retry_after_s=3)
        self.at_once += 1
        try:
            yield
        finally:
            self.at_once -= 1

    async def answer(self, call: Call[Nothing, bytes]) -> Taken:
        self.proofs.append(call.body)
        proof = call.request.headers.get("x-proof", "")
        if not hmac.compare_digest(signed(call.body), proof):
            raise Problem("unauthorized")
        return Taken(name=call.path["name"], length=len(call.body))


def signed(raw: bytes) -> str:
    return hmac.new(KEY, raw, "sha256").hexdigest()


def reading(scope: str, path: str = "/there") -> Endpoint:
    async def answer(call: Call[Nothing, Nothing]) -> Taken:
        return Taken(name=call.principal.name, length=0)

    return Endpoint(
        method="GET", path=path, scope=scope, summary="s", answer=answer, returns={200: Taken}
    )


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("application/json", b'{"a":  1}'),
        ("application/x-www-form-urlencoded", b"a=1&b=%20"),
        ("text/plain; charset=latin-1", b"caf\xe9"),
        ("", b"\x00\xff nothing says what this is"),
    ],
)
async def test_a_signed_row_proves_its_caller_over_the_bytes_as_they_came(kind: str, raw: bytes):
    hook = Hook()
    async with house(door=door_with(hook.row())) as home, home.client() as client:
        headers = {"Content-Type": kind} if kind else {}
        taken = await client.post(
            "/signed/build", content=raw, headers=headers | {"X-Proof": signed(raw)}
        )
        forged = await client.post("/signed/build", content=raw + b" ", headers=headers)

        assert (taken.status_code, taken.json()) == (200, {"name": "build", "length": len(raw)})
        assert forged.status_code == 401
        assert hook.proofs == [raw, raw + b" "]


async def test_a_credential_is_no_proof_for_a_signed_row():
    async with house(door=door_with(Hook().row())) as home, home.client(home.operator) as client:
        assert (await client.post("/signed/build", content=b"x")).status_code == 401


async def test_a_raw_body_has_the_limits_of_every_other():
    hook = Hook()
    async with house(door=door_with(hook.row("text/plain"))) as home, home.client() as client:
        text = {"Content-Type": "text/plain"}
        large = await client.post("/signed/build", content=b"x" * (SMALL + 1), headers=text)
        packed = await client.post(
            "/signed/build",
            content=gzip.compress(b"x"),
            headers=text | {"Content-Encoding": "gzip"},
        )
        other = await client.post("/signed/build", json={})
        chunked = await exchange(
            home.port,
            b"POST /signed/build HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
            + (b"1f4\r\n%b\r\n" % (b"x" * 500)) * 3
            + b"0\r\n\r\n",
        )

        assert (large.status_code, packed.status_code, other.status_code) == (413, 415, 415)
        assert chunked.startswith(b"HTTP/1.1 413")
        assert hook.proofs == []


async def test_the_limit_of_a_row_is_asked_before_a_byte_of_its_body_is_read():
    hook = Hook(most=0)
    async with house(door=door_with(hook.row())) as home, connected(home.port) as (reader, writer):
        writer.write(
            b"POST /signed/build HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"
        )
        answer = await reader.readuntil(b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 3" in answer.lower()
    assert (hook.refused, hook.proofs) == (1, [])


def test_a_signed_row_without_raw_bytes_or_without_a_limit_is_refused():
    async def answer(call: Call[Nothing, bytes]) -> Taken:
        return Taken(name="", length=0)

    for more in ({"body": bytes}, {"admit": Hook().admit}):
        with pytest.raises(ValueError, match="is signed"):
            Endpoint(
                method="POST",
                path="/signed/{name}",
                scope=SIGNED_SCOPE,
                summary="s",
                answer=answer,
                **more,  # pyright: ignore[reportArgumentType]
            )


def test_the_walk_sees_a_new_row_that_strangers_reach():
    rows = [Hook().row(), reading(PUBLIC, "/cards/{name}"), reading("read")]
    table = Table(rows)

    assert [row for row in table if row.is_open] == rows[:2]
    assert not {(row.method, row.path) for row in rows} & (OPEN | SIGNED)


async def test_a_public_row_may_have_parameters():
    async with (
        house(door=door_with(reading(PUBLIC, "/cards/{name}"))) as home,
        home.client() as client,
    ):
        assert (await client.get("/cards/a%2Fb")).status_code == 200
        assert (await client.get("/cards/a/b")).status_code == 401
        assert (await client.post("/cards/a")).status_code == 401


async def test_a_scope_of_a_kind_is_had_by_whoever_has_one_of_it():
    async with house(door=door_with(reading("a2a:*"), reading(ANYBODY, "/all"))) as home:
        statuses: dict[str, int] = {}
        for scope in ("a2a:sister", "send", "inbox:a2a", "operator"):
            async with home.client(await home.token(scope, name=scope.replace(":", "."))) as client:
                assert (await client.get("/all")).status_code == 200
                statuses[scope] = (await client.get("/there")).status_code

    assert statuses == {"a2a:sister": 200, "send": 403, "inbox:a2a": 403, "operator": 200}


async def test_the_document_says_what_a_raw_body_may_be():
    async with (
        house(door=door_with(Hook().row("text/plain"))) as home,
        home.client(home.operator) as client,
    ):
        document = (await client.get("/openapi.json")).json()
    operation = document["paths"]["/signed/{name}"]["post"]

    assert list(operation["requestBody"]["content"]) == ["text/plain"]
    assert (operation["security"], operation["x-scope"]) == ([], "signed")
