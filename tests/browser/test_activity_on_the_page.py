"""The page at `/` shows what happened, what is unread, what waits and what agents ask.

What the inbox and the approvals hold is given to the browser as a server's answers: these tests are
about the page.
"""

import asyncio
import json
from typing import Any

from playwright.async_api import Page, Request, Route, ViewportSize

from tests.browser.chromium import chromium
from tests.browser.test_home_page import HOSTILE, PAYLOADS, signed_in, watch
from tests.integration.http.serving import house
from wakeful.models.scripted import Scripted
from wakeful.notices.notices import Notices
from wakeful.vocabulary.errors import Permanent

ACTIVITY = "system:activity"
ATTACK = "\n".join([*PAYLOADS, HOSTILE])
NARROW: ViewportSize = {"width": 320, "height": 700}
MADE = ":is(script, iframe, svg, img, style, link, base, meta, a)"


def page_of(*items: dict[str, Any]) -> str:
    return json.dumps({"items": items, "next": None})


def item(text: str, source: str = "backup") -> dict[str, Any]:
    return {
        "id": "st_1",
        "created_at": "2026-05-04T10:11:12Z",
        "priority": "next",
        "source": source,
        "text": text,
        "state": "held",
    }


def question(text: str, number: int = 7) -> dict[str, Any]:
    return {
        "id": f"ap_{number}",
        "number": number,
        "kind": "question",
        "session_key": "agent:main:main",
        "turn_id": "tn_1",
        "tool": None,
        "arguments": None,
        "question": text,
        "state": "open",
        "expires_at": "2026-05-11T10:11:12Z",
    }


def call_of(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = {"kind": "tool", "question": None, "tool": tool, "arguments": arguments}
    return question("", 8) | asked


class Answers:
    """What the browser is answered instead of the server, and what it sent."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.bodies: dict[str, str] = {}
        self.status = 200
        self.sent: list[tuple[str, Any]] = []

    async def give(self, path: str, body: str) -> None:
        self.bodies[path] = body
        await self._page.route(f"**{path}*", self._answer)
        await self._page.route(f"**{path}/**", self._answer)

    async def _answer(self, route: Route, request: Request) -> None:
        path = next(path for path in self.bodies if path in request.url)
        if request.method == "POST":
            self.sent.append((request.url.partition("/api")[2], request.post_data_json))
            self.bodies[path] = page_of()
            await route.fulfill(status=200, content_type="application/json", body="{}")
            return
        await route.fulfill(
            status=self.status, content_type="application/json", body=self.bodies[path]
        )


async def test_what_is_read_in_one_browser_is_no_longer_unread_in_another():
    model = Scripted([ATTACK, Permanent(ATTACK), "later"])
    async with house(model) as home, chromium() as context, chromium() as elsewhere:
        page, other = await signed_in(context, home), await signed_in(elsewhere, home)
        wrong = watch(page)
        await page.get_by_text("Nothing happened yet.").wait_for()
        for _ in range(2):
            await home.runtime.wait(await home.runtime.send(ATTACK, session=ACTIVITY))
        tell = Notices(home.runtime.bus, home.runtime.services.ids)
        await home.runtime.store.transact(
            lambda tx: tell.add(tx, HOSTILE, HOSTILE, "", ATTACK, "main")
        )
        for one in (page, other):
            await one.get_by_text("3 unread").wait_for()
            await one.wait_for_selector("#activity li:nth-child(3).unread")
        title = await other.title()
        told = await page.inner_text("#activity")
        made = await page.locator(f"#activity {MADE}").count()

        await page.get_by_role("button", name="Mark as read").click()
        for one in (page, other):
            await one.wait_for_selector("#unread", state="hidden")
            await one.wait_for_selector("#activity .unread", state="detached")
        cleared = await other.title()
        await page.select_option("#origin", "system")
        await page.wait_for_selector("#activity li:first-child:last-child")

    assert (title, cleared) == ("(3) wakeful", "wakeful")
    assert made == 0
    assert "<svg/onload=alert(3)>" in told
    assert "failed" in told
    assert "$0.00" in told
    assert wrong == []


async def test_inbox_and_approvals_are_shown_and_answered_and_hide_where_there_are_none():
    async with house() as home, chromium() as context:
        page = await signed_in(context, home)
        wrong = watch(page)
        answers = Answers(page)
        await answers.give("/api/inbox", page_of(item(ATTACK, HOSTILE)))
        asked = [question(ATTACK), call_of(HOSTILE, {"command": ATTACK})]
        await answers.give("/api/approvals", page_of(*asked))
        await page.reload()
        await page.wait_for_selector("#inbox li")
        await page.wait_for_selector("#approvals li:nth-child(2)")
        told = await page.inner_text("#aside")
        made = await page.locator(f"#aside {MADE}").count()
        await page.set_viewport_size(NARROW)
        wide = await page.evaluate("document.documentElement.scrollWidth")

        await page.get_by_label("Answer to #7").fill("blue")
        await page.get_by_role("button", name="Answer").click()
        await page.get_by_text("No agent waits for your word.").wait_for()
        await page.get_by_role("button", name="Dismiss").click()
        await page.get_by_text("Nothing waits.").wait_for()
        await page.fill("#item", "water the plants")
        await page.select_option("#priority", "later")
        await page.press("#item", "Enter")
        await page.wait_for_selector("#item:placeholder-shown")

        answers.status = 503
        await page.reload()
        await page.locator("#inbox-state").get_by_text("The server answered 503.").wait_for()
        answers.status = 200
        await page.locator("#inbox-state").get_by_role("button", name="Try again").click()
        await page.get_by_text("Nothing waits.").wait_for()
        answers.status = 404
        await page.reload()
        await page.wait_for_selector("#inbox-part", state="hidden")
        await page.wait_for_selector("#activity-part", state="visible")

    assert answers.sent == [
        ("/approvals/ap_7", {"decision": "approve", "note": "blue"}),
        ("/inbox/st_1/dismiss", {}),
        ("/inbox", {"text": "water the plants", "priority": "later"}),
    ]
    assert made == 0
    assert "<svg/onload=alert(3)>" in told
    assert wide <= NARROW["width"]
    assert wrong == []


async def test_a_slow_or_broken_server_is_told_and_older_rows_come_when_asked_for():
    async with house() as home, chromium() as context:
        for number in range(35):
            await home.runtime.wait(await home.runtime.send(f"hello {number}"))
        page = await signed_in(context, home)
        wrong = watch(page)
        await page.get_by_role("button", name="Older").click()
        await page.wait_for_selector("#activity li:nth-child(35):last-child")
        await page.wait_for_selector("#older", state="hidden")

        gate = asyncio.Event()

        async def slow(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await page.route("**/api/activity?*", slow)
        await page.reload()
        await page.locator("#activity-state").get_by_text("Loading…").wait_for()
        gate.set()
        await page.wait_for_selector("#activity li")
        await page.unroute("**/api/activity?*")
        await page.route("**/api/activity?*", lambda route: route.fulfill(status=503, body="{}"))
        await page.reload()
        again = page.locator("#activity-state").get_by_role("button", name="Try again")
        await again.wait_for()
        await page.unroute("**/api/activity?*")
        await again.click()
        await page.wait_for_selector("#activity li")

    assert wrong == []


async def test_what_is_left_in_the_inbox_appears_and_is_dismissed_in_every_browser():
    async with house() as home, chromium() as context, chromium() as elsewhere:
        page, other = await signed_in(context, home), await signed_in(elsewhere, home)
        wrong = watch(page)
        await page.get_by_text("Nothing waits.").wait_for()
        await page.fill("#item", HOSTILE)
        await page.press("#item", "Enter")
        for one in (page, other):
            await one.locator("#inbox li").get_by_text(HOSTILE).wait_for()
        made = await other.locator(f"#inbox {MADE}").count()
        await other.get_by_role("button", name="Dismiss").click()
        for one in (page, other):
            await one.wait_for_selector("#inbox li", state="detached")
        (left,) = await home.runtime.inbox()

    assert made == 0
    assert (left.state.value, left.state_reason) == ("cancelled", "dismissed")
    assert wrong == []
