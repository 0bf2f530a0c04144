"""An app of a library below a prefix is as guarded as our own routes, and opened when asked for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.integration.http.raw import exchange
from tests.integration.http.serving import PATIENCE_S, House, door_with, house
from tests.integration.http.test_guard import METHODS
from tests.waiting import eventually
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.endpoint import PUBLIC
from wakeful.doors.http.mounts import Mount
from wakeful.doors.http.problems import Problem, missing

SMALL = 1000


@dataclass
class Library:
    """An app as SDKs make them: Starlette, with a task group that lives as long as it does."""

    opened: int = 0
    closed: int = 0
    left: list[str] = field(default_factory=list[str])
    ticks: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    is_installed: bool = True

    @asynccontextmanager
    async def make(self) -> AsyncGenerator[ASGIApp, None]:
        if not self.is_installed:
            raise missing("sdk")
        self.opened += 1
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            try:
                yield Starlette(
                    routes=[
                        Route("/", self.say, methods=["GET", "POST", "DELETE"]),
                        Route("/say/{word}", self.say, methods=["GET", "POST", "DELETE"]),
                        Route("/stream", self.stream),
                        Route("/break", self.fail),
                        Route("/kept", self.kept),
                    ]
                )
            finally:
                group.cancel_scope.cancel()
                self.closed += 1

    async def say(self, request: Request) -> Response:
        body = await request.body()
        scope = request.scope
        return JSONResponse(
            {
                "method": request.method,
                "who": scope["principal"].name,
                "root": scope["root_path"],
                "agent": scope["path_params"].get("agent"),
                "word": scope["path_params"].get("word"),
                "length": len(body),
            }
        )

    async def stream(self, request: Request) -> Response:
        return StreamingResponse(self._told(), media_type="text/plain")

    async def _told(self) -> AsyncIterator[str]:
        try:
            while word := await self.ticks.get():
                if word == "break":
                    raise ValueError("secret words")
                yield word
        finally:
            self.left.append("stream")

    async def fail(self, request: Request) -> Response:
        raise ValueError("secret words")

    async def kept(self, request: Request) -> Response:
        return Response("x", headers={"Cache-Control": "max-age=60"})


def mounted(
    make: Callable[[], AbstractAsyncContextManager[ASGIApp]], scope: str = "a2a:*"
) -> HttpDoor:
    def form(problem: Problem) -> Response:
        return JSONResponse({"sdk": problem.code, "detail": problem.detail}, problem.status)

    row = Mount(path="/sdk/{agent}", scope=scope, summary="An SDK", make=make, largest_body=SMALL)
    return door_with(row, error_forms={"/sdk": form})


@asynccontextmanager
async def library(**given: Any) -> AsyncGenerator[tuple[Library, House, httpx2.AsyncClient], None]:
    sdk = Library(**given)
    async with house(door=mounted(sdk.make)) as home:
        peer = await home.token("a2a:sister", name="sister")
        async with home.client(peer) as client:
            yield sdk, home, client


@pytest.mark.parametrize("path", ["/sdk/main", "/sdk/main/", "/sdk/main/say/x", "/sdk/main/no"])
async def test_nobody_reaches_a_mounted_app_without_its_scope(path: str):
    async with library() as (sdk, home, _), home.client() as stranger:
        sender = await home.token("send")
        async with home.client(sender) as other:
            for method in METHODS:
                alone = await stranger.request(method, path)
                wrong = await other.request(method, path, json={})
                assert (alone.status_code, wrong.status_code) in ((401, 403), (429, 403))
        answer = await stranger.get(path, headers={"Host": "evil.test"})

        assert answer.status_code == 421
        assert sdk.opened == 0


def test_a_mount_is_never_open_to_strangers():
    with pytest.raises(ValueError, match="needs a scope"):
        mounted(Library().make, PUBLIC)


async def test_a_mounted_app_knows_who_asks_and_where_it_is():
    async with library() as (_, _, client):
        for path, word in (
            ("/sdk/main", None),
            ("/sdk/main/", None),
            ("/sdk/main/say/hello", "hello"),
            ("/sdk/ma%2Fin/say/hello", "hello"),
        ):
            for method in ("GET", "POST", "DELETE"):
                said = (await client.request(method, path)).json()
                agent = "ma/in" if "%" in path else "main"
                assert said == {
                    "method": method,
                    "who": "sister",
                    "root": f"/sdk/{agent}",
                    "agent": agent,
                    "word": word,
                    "length": 0,
                }
        missing_route = await client.get("/sdk/main/nonsense")
        above = await client.get("/sdk")

    assert (missing_route.status_code, missing_route.text) == (404, "Not Found")
    assert (above.status_code, above.json()["sdk"]) == (404, "not-found")


async def test_a_mounted_app_is_opened_once_by_the_first_who_asks_and_closed_with_the_server():
    async with library() as (sdk, _, client):
        before = sdk.opened
        answers = await asyncio.gather(*(client.get("/sdk/main") for _ in range(8)))
        assert sdk.closed == 0

    assert {answer.status_code for answer in answers} == {200}
    assert (before, sdk.opened, sdk.closed) == (0, 1, 1)


async def test_an_extra_that_is_missing_is_named_until_it_is_there():
    async with library(is_installed=False) as (sdk, _, client):
        without = await client.get("/sdk/main")
        sdk.is_installed = True
        later = await client.get("/sdk/main")

    assert (without.status_code, without.json()["sdk"]) == (501, "not-installed")
    assert "wakeful[sdk]" in without.json()["detail"]
    assert later.status_code == 200


async def test_the_body_of_a_mounted_app_obeys_our_limits_and_not_its_own():
    async with library() as (_, home, client):
        fits = await client.post("/sdk/main", content=b" " * SMALL, headers=AS_JSON)
        large = await client.post("/sdk/main", content=b" " * (SMALL + 1), headers=AS_JSON)
        other = await client.post("/sdk/main", content=b"x", headers={"Content-Type": "text/x"})
        chunked = await exchange(
            home.port,
            b"POST /sdk/main HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"%b: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
            % (b"Authorization", client.headers["Authorization"].encode())
            + (b"1f4\r\n%b\r\n" % (b" " * 500)) * 3
            + b"0\r\n\r\n",
        )

    assert (fits.json()["length"], large.status_code, other.status_code) == (SMALL, 413, 415)
    assert chunked.startswith(b"HTTP/1.1 413")
    assert msgspec.json.decode(chunked.partition(b"\r\n\r\n")[2])["sdk"] == "too-large"


AS_JSON = {"Content-Type": "application/json"}


async def test_what_a_mounted_app_streams_passes_as_it_comes():
    async with (
        library() as (sdk, _, client),
        client.stream("GET", "/sdk/main/stream") as answer,
        asyncio.timeout(PATIENCE_S),
    ):
        parts = answer.aiter_text()
        for word in ("one", "two"):
            await sdk.ticks.put(word)
            assert await anext(parts) == word


async def test_a_mounted_app_learns_that_its_client_left():
    async with library() as (sdk, _, client):
        async with client.stream("GET", "/sdk/main/stream"):
            pass
        await eventually(lambda: sdk.left == ["stream"])


@pytest.mark.parametrize("how", ["revoked", "stopped", "broken"])
async def test_a_stream_of_a_mounted_app_ends_when_it_must(how: str):
    has_begun = asyncio.Event()

    async def read(client: httpx2.AsyncClient) -> None:
        async with client.stream("GET", "/sdk/main/stream") as told:
            has_begun.set()
            with pytest.raises(httpx2.HTTPError):
                await told.aread()

    sdk = Library()
    async with (
        asyncio.timeout(PATIENCE_S),
        asyncio.TaskGroup() as group,
        house(door=mounted(sdk.make)) as home,
    ):
        client = home.client(await home.token("a2a:sister", name="sister"))
        reading = group.create_task(read(client))
        await has_begun.wait()
        if how == "revoked":
            await home.runtime.credentials.revoke("sister", by="test")
        elif how == "broken":
            await sdk.ticks.put("break")
        if how != "stopped":
            await reading
    await client.aclose()

    assert sdk.left == ["stream"]


async def test_a_mounted_app_that_breaks_is_answered_for_without_its_words(
    caplog: pytest.LogCaptureFixture,
):
    words = " ".join(("secret", "words"))

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError(words)

    @asynccontextmanager
    async def make() -> AsyncGenerator[ASGIApp, None]:
        yield broken

    async with house(door=mounted(make, "send")) as home, home.client(home.operator) as client:
        answer = await client.get("/sdk/main")
        healthy = await client.get("/healthz")

    assert (answer.status_code, answer.json()["sdk"]) == (500, "internal")
    assert healthy.status_code == 200
    assert words not in caplog.text + answer.text


async def test_an_app_that_dies_is_opened_again():
    kill = asyncio.Event()
    opened: list[int] = []

    async def well(scope: Scope, receive: Receive, send: Send) -> None:
        await Response("well")(scope, receive, send)

    @asynccontextmanager
    async def make() -> AsyncGenerator[ASGIApp, None]:
        opened.append(1)

        async def die() -> None:
            await kill.wait()
            raise ValueError("dead")

        async with asyncio.TaskGroup() as group:
            group.create_task(die())
            yield well

    async with house(door=mounted(make, "send")) as home, home.client(home.operator) as client:
        first = await client.get("/sdk/main")
        kill.set()
        await client.get("/healthz")
        kill.clear()
        second = await client.get("/sdk/main")
        healthy = await client.get("/healthz")

    assert (first.text, second.text, len(opened)) == ("well", "well", 2)
    assert healthy.status_code == 200


async def test_a_mounted_app_says_itself_how_long_an_answer_is_kept():
    async with library() as (_, _, client):
        kept, plain = await client.get("/sdk/main/kept"), await client.get("/sdk/main")

    assert kept.headers.get_list("cache-control") == ["max-age=60"]
    assert plain.headers.get_list("cache-control") == ["no-store"]
    assert kept.headers["x-content-type-options"] == "nosniff"


async def test_a_mount_is_counted_and_stands_in_the_document_without_its_inside():
    async with library() as (_, home, client):
        await client.get("/sdk/main/say/x")
        async with home.client(home.operator) as operator:
            document = (await operator.get("/openapi.json")).json()
        counted = home.runtime.metrics.registry.get_sample_value(
            "wakeful_http_requests_total", {"method": "*", "route": "/sdk/{agent}", "status": "200"}
        )

    assert document["paths"]["/sdk/{agent}"] == {
        "summary": "An SDK",
        "x-method": "*",
        "x-scope": "a2a:*",
    }
    assert counted == 1
