"""A browser signs in with a code that works once, and stays signed in by its cookie."""

import re

from tests.integration.http.serving import House, house
from wakeful.access.tokens import CODE_SECONDS
from wakeful.vocabulary.clock import ManualClock


async def code_for(home: House) -> str:
    async with home.client(home.operator) as operator:
        made = await operator.post("/api/login/code")
    assert made.status_code == 201
    return made.json()["code"]


async def test_a_code_signs_in_once():
    async with house() as home, home.client(headers={"Origin": home.url}) as browser:
        code = await code_for(home)
        before = await browser.get("/api/sessions")
        signed_in = await browser.post("/api/login", json={"code": code})
        after = await browser.get("/api/sessions")
        sent = await browser.post("/api/sessions/main/messages", json={"text": "a"})
        again = await browser.post("/api/login", json={"code": code})

    assert (before.status_code, signed_in.status_code, after.status_code) == (401, 204, 200)
    assert (sent.status_code, again.status_code) == (202, 401)


async def test_a_code_is_worth_nothing_after_five_minutes():
    clock = ManualClock()
    async with house(clock=clock) as home, home.client() as browser:
        code = await code_for(home)
        clock.advance(CODE_SECONDS + 1)
        late = await browser.post("/api/login", json={"code": code})

    assert late.status_code == 401


async def test_a_code_goes_with_the_token_that_asked_for_it():
    async with house() as home, home.client() as browser:
        secret = await home.token("operator", name="laptop")
        async with home.client(secret) as laptop:
            code = (await laptop.post("/api/login/code")).json()["code"]
        await home.runtime.credentials.revoke("laptop", by="test")
        late = await browser.post("/api/login", json={"code": code})

    assert late.status_code == 401


async def test_who_made_a_code_is_on_record_and_the_code_is_not():
    async with house() as home:
        code = await code_for(home)
        rows = await home.runtime.store.read(
            "SELECT who, action, target FROM audit WHERE action = 'login.code'"
        )
        kept = await home.runtime.store.read("SELECT hash FROM login_codes")

    assert [row[:2] for row in rows] == [("the operator", "login.code")]
    assert code not in str(kept)


async def test_the_page_is_whole_and_runs_nothing_that_stands_in_it():
    async with house() as home, home.client() as stranger:
        page = (await stranger.get("/")).text
        parts = re.findall(r'(?:src|href)="(/[^"]+)"', page)
        kinds = {part: (await stranger.get(part)).headers.get("content-type") for part in parts}

    assert "<script>" not in page
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)
    assert kinds == {
        "/icon.svg": "image/svg+xml; charset=utf-8",
        "/home.css": "text/css; charset=utf-8",
        "/activity.js": "text/javascript; charset=utf-8",
        "/agents.js": "text/javascript; charset=utf-8",
        "/automations.js": "text/javascript; charset=utf-8",
        "/home.js": "text/javascript; charset=utf-8",
        "/docs": "application/problem+json",
    }
