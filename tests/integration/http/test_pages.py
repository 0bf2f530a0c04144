"""A single-page app is entered at each of its real paths; its hashed files are kept for ever."""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.integration.http.raw import exchange
from tests.integration.http.serving import House, door_with, house
from wakeful.doors.http.pages import FOR_EVER, Site
from wakeful.doors.http.table import Table

INDEX = b'<!doctype html><script src="/assets/app-3f2a.js"></script>'
SCRIPT = b"console.log('awake');" * 50
PATHS = ("/console", "/sessions/{key}", "/hooks")


def bundle(folder: Path) -> Path:
    """Write files as a bundler leaves them; what is packed as br only looks so."""
    assets = folder / "assets"
    assets.mkdir(parents=True)
    for file, content in (
        (folder / "index.html", INDEX),
        (folder / "robots.txt", b"Disallow: /"),
        (assets / "app-3f2a.js", SCRIPT),
        (assets / "app-3f2a.js.gz", gzip.compress(SCRIPT)),
        (assets / "app-3f2a.js.br", b"as if it were brotli"),
        (assets / "logo-77.svg", b"<svg/>"),
    ):
        file.write_bytes(content)
    return folder


@asynccontextmanager
async def site(folder: Path) -> AsyncGenerator[tuple[House, httpx2.AsyncClient], None]:
    rows = Site(folder=bundle(folder), paths=PATHS, summary="The console").endpoints()
    async with house(door=door_with(*rows)) as home, home.client() as client:
        yield home, client


async def test_a_person_who_is_not_signed_in_is_shown_the_way_in():
    visit = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
    async with house() as home, home.client() as client:
        shown = [await client.get(path, headers=visit) for path in ("/docs", "/nonsense")]
        program = await client.get("/docs")

    assert [answer.status_code for answer in shown] == [401, 401]
    assert {answer.headers["content-type"] for answer in shown} == {"text/html; charset=utf-8"}
    assert shown[0].text == shown[1].text
    assert '<a href="/">sign in</a>' in shown[0].text
    assert program.json()["code"] == "unauthorized"


async def test_every_real_path_shows_the_index_and_no_other(tmp_path: Path):
    async with site(tmp_path) as (home, client), home.client(home.operator) as operator:
        for path in ("/console", "/sessions/agent%3Amain%3Amain", "/sessions/a%2F..%2Fb", "/hooks"):
            answer = await client.get(path)
            assert (answer.status_code, answer.content) == (200, INDEX)
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
        statuses = {
            path: (await client.get(path)).status_code
            for path in ("/nonsense", "/sessions", "/sessions/a/b", "/api/nonsense", "/hooks/x")
        }
        assert set(statuses.values()) == {401}
        for path in ("/api/nonsense", "/api/sessions/nonsense", "/hooks/x/y", "/assets/app.js"):
            answer = await operator.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert (await client.post("/console")).status_code == 401


async def test_a_hashed_file_is_kept_for_ever_and_an_unknown_one_is_not_there(tmp_path: Path):
    async with site(tmp_path) as (_, client):
        known = await client.get("/assets/logo-77.svg")
        unknown = await client.get("/assets/logo-78.svg")
        odd = [
            await client.get(f"/assets/{name}")
            for name in ("..%2Findex.html", "%2e%2e", "app-3f2a.js.gz", "a%00", "index.html")
        ]

    assert known.headers.get_list("cache-control") == [FOR_EVER]
    assert known.headers["content-type"] == "image/svg+xml; charset=utf-8"
    assert (unknown.status_code, unknown.headers["cache-control"]) == (404, "no-store")
    assert {answer.status_code for answer in odd} == {404}


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip", "gzip"), ("gzip, deflate, br", "br"), ("identity", None), ("br;q=0", None)],
)
async def test_a_packed_form_is_served_to_whoever_takes_it(
    tmp_path: Path, accepted: str, encoding: str | None
):
    async with site(tmp_path) as (home, _):
        raw = await exchange(
            home.port,
            "GET /assets/app-3f2a.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Accept-Encoding: {accepted}\r\n\r\n",
        )
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    content = gzip.decompress(body) if encoding == "gzip" else body

    assert (f"content-encoding: {encoding}" in lines) == (encoding is not None)
    assert "content-type: text/javascript; charset=utf-8" in lines
    assert "vary: accept-encoding" in lines
    assert content == (b"as if it were brotli" if encoding == "br" else SCRIPT)


async def test_an_index_is_asked_for_each_time_and_sent_when_it_has_changed(tmp_path: Path):
    async with site(tmp_path) as (_, client):
        first = await client.get("/console")
        tag = first.headers["etag"]
        again = await client.get("/sessions/x", headers={"If-None-Match": f'"other", W/{tag}'})
        other = await client.get("/console", headers={"If-None-Match": '"other"'})
        head = await client.head("/console")

    assert first.headers.get_list("cache-control") == ["no-cache"]
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["cache-control"] == "no-cache"
    assert other.status_code == 200
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == len(INDEX)


async def test_our_own_pages_are_served_the_same_way():
    async with house() as home, home.client() as client, home.client(home.operator) as operator:
        home_page, script = await client.get("/"), await client.get("/home.js")
        docs = await operator.get("/docs")
        known = await client.get("/", headers={"If-None-Match": home_page.headers["etag"]})
        answer = await operator.get("/api/sessions")

    for page in (home_page, script, docs):
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
    assert known.status_code == 304
    assert answer.headers.get_list("cache-control") == ["no-store"]


def test_a_file_of_an_unknown_kind_is_refused_at_the_start(tmp_path: Path):
    (bundle(tmp_path) / "setup.exe").write_bytes(b"MZ")
    rows = Site(folder=tmp_path, paths=("/console",), summary="s").endpoints

    with pytest.raises(ValueError, match=r"setup\.exe"):
        rows()


def test_a_path_cannot_be_taken_twice(tmp_path: Path):
    rows = Site(folder=bundle(tmp_path), paths=("/a", "/a"), summary="s").endpoints()

    with pytest.raises(ValueError, match="two rows answer GET /a"):
        Table(rows)


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/console", LINK, 200),
        ("/sessions/x", LINK | {"Sec-Fetch-Site": "same-site"}, 200),
        ("/console", LINK | {"Sec-Fetch-Dest": "iframe"}, 403),
        ("/console", LINK | {"Sec-Fetch-Mode": "no-cors"}, 403),
        ("/console", LINK | {"Origin": "http://evil.test"}, 403),
        ("/assets/logo-77.svg", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/api/sessions", LINK, 401),
    ],
)
async def test_a_link_on_another_site_leads_to_a_page_and_nothing_else_does(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
):
    async with site(tmp_path) as (_, client):
        assert (await client.get(path, headers=headers)).status_code == status
