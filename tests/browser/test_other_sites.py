"""A page of another site, open beside a console that is logged in, does and learns nothing."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.browser.chromium import chromium, console
from tests.server_process import ServerProcess, serving

MESSAGES = "/api/sessions/main/messages"
PAGE = b"<!doctype html><meta charset=utf-8><title>nice pictures</title>"

SUBMIT = """([url, enctype]) => {
    const frame = document.createElement("iframe");
    frame.name = "hidden";
    const form = document.createElement("form");
    Object.assign(form, {action: url, method: "POST", enctype, target: "hidden"});
    const field = document.createElement("input");
    const isParts = enctype === "multipart/form-data";
    field.name = isParts ? "text" : '{"text": "forged", "source": "';
    field.value = isParts ? "forged" : '"}';
    form.append(field);
    document.body.replaceChildren(frame, form);
    form.submit();
}"""

LOOK_INSIDE = """() => {
    const inside = document.querySelector("iframe").contentDocument;
    return inside === null ? "" : inside.documentElement.textContent;
}"""

FETCH = """async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        return [answer.type, answer.status, await answer.text()];
    } catch (error) {
        return [error.name, 0, ""];
    }
}"""

NOTHING = ["TypeError", 0, ""]
UNREADABLE = (NOTHING, "net::ERR_BLOCKED_BY_RESPONSE.NotSameOrigin")

LISTEN = """([url]) => new Promise((resolve) => {
    const source = new EventSource(url, {withCredentials: true});
    source.addEventListener("open", () => resolve("open"));
    source.addEventListener("error", () => resolve("error"));
})"""

SOCKET = """([url]) => new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.addEventListener("open", () => resolve("open"));
    socket.addEventListener("message", () => resolve("message"));
    socket.addEventListener("close", () => resolve("closed"));
})"""

LOAD = """([kind, url]) => new Promise((resolve) => {
    const element = document.createElement(kind);
    element.addEventListener("load", () => resolve("load"));
    element.addEventListener("error", () => resolve("error"));
    element.src = url;
    document.body.append(element);
})"""


@asynccontextmanager
async def another_site() -> AsyncGenerator[int, None]:
    """Serve an innocent page on a port of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(PAGE)}\r\n\r\n".encode() + PAGE)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


class Attack:
    """A page of another site."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url

    async def run(self, script: str, *given: Any) -> Any:
        return await self._page.evaluate(script, list(given))

    async def post_form(self, path: str, enctype: str) -> tuple[int, str]:
        """Return how a form was answered, and what the page could read of it."""
        async with self._page.expect_response(self._url + path) as answer:
            await self.run(SUBMIT, self._url + path, enctype)
        return (await answer.value).status, await self.run(LOOK_INSIDE)

    async def fetch(self, path: str, **options: Any) -> tuple[Any, str]:
        """Return what the page gets of an answer, and why the browser does not give it more."""
        wanted = self._url + path
        async with self._page.expect_event(
            "requestfailed", lambda request: request.url == wanted
        ) as failed:
            got = await self.run(FETCH, wanted, {"credentials": "include", **options})
        return got, (await failed.value).failure or ""


@asynccontextmanager
async def attack(folder: Path, host: str) -> AsyncGenerator[tuple[Attack, ServerProcess], None]:
    async with serving(folder) as server, chromium() as context, another_site() as port:
        own = await console(context, server)
        assert (await own.goto(f"{server.url}/api/sessions")) is not None
        page = await context.new_page()
        await page.goto(f"http://{host}:{port}/")
        yield Attack(page, server.url), server
        # The cookie is still worth something: what failed did not fail for want of it.
        answer = await own.goto(f"{server.url}/api/stimuli")
        assert answer is not None
        assert (answer.status, json.loads(await answer.text())["items"]) == (200, [])
        assert server.rows("SELECT id FROM stimuli") == []


# To a browser another port of the same host is the same site: it sends the strict cookie along.
HOSTS = pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])


@HOSTS
async def test_another_site_cannot_act(tmp_path: Path, host: str):
    """T5: a form or a fetch leaves no stimulus behind."""
    body = json.dumps({"text": "forged"})
    as_json = {"Content-Type": "application/json"}
    async with attack(tmp_path / "home", host) as (site, server):
        for enctype in ("text/plain", "application/x-www-form-urlencoded"):
            assert await site.post_form(MESSAGES, enctype) == (415, "")
        # Its kind is welcome here, its origin is not; from another host the cookie stays away too.
        refusal = 403 if host == "127.0.0.1" else 401
        assert await site.post_form(MESSAGES, "multipart/form-data") == (refusal, "")
        assert (await site.post_form("/api/halt", "text/plain"))[0] == 415
        for path, sent in ((MESSAGES, {"body": body}), ("/api/halt", {}), ("/api/resume", {})):
            assert await site.fetch(path, method="POST", mode="no-cors", **sent) == UNREADABLE
        preflighted = await site.fetch(MESSAGES, method="POST", headers=as_json, body=body)
        assert preflighted == (NOTHING, "net::ERR_FAILED")

        assert server.rows("SELECT * FROM halts") == []


@HOSTS
async def test_another_site_cannot_read(tmp_path: Path, host: str):
    """T3, T5: neither by fetch nor by a stream, a socket or a tag."""
    async with attack(tmp_path / "home", host) as (site, server):
        for path in ("/api/sessions", "/openapi.json", "/metrics", "/healthz"):
            assert await site.fetch(path) == (NOTHING, "net::ERR_FAILED")
            assert await site.fetch(path, mode="no-cors") == UNREADABLE
        assert await site.run(LISTEN, f"{server.url}/api/events") == "error"
        for path in ("/", "/api/events"):
            url = server.url.replace("http:", "ws:") + path
            assert await site.run(SOCKET, url) == "closed"
        for kind, path in (("script", "/docs/docs.js"), ("img", "/docs"), ("script", "/api/turns")):
            assert await site.run(LOAD, kind, server.url + path) == "error"


@HOSTS
async def test_a_link_on_another_site_leads_to_the_page(tmp_path: Path, host: str):
    async with (
        serving(tmp_path / "home") as server,
        chromium() as context,
        another_site() as port,
    ):
        page = await context.new_page()
        await page.goto(f"http://{host}:{port}/")
        async with page.expect_response(f"{server.url}/") as answer:
            await page.evaluate("(url) => { location.href = url; }", f"{server.url}/")
        await page.wait_for_selector("#outside:not([hidden])")

        assert (await answer.value).status == 200


async def test_a_name_that_was_made_to_point_here_is_not_served(tmp_path: Path):
    """T4: rebinding, in a real browser."""
    async with serving(tmp_path / "home") as server, chromium() as context:
        await console(context, server)
        page = await context.new_page()
        for path in ("/docs", "/healthz", "/api/events"):
            answer = await page.goto(f"http://rebound.test:{server.port}{path}")

            assert answer is not None
            assert answer.status == 421
