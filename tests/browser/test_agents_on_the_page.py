"""The page at `/` shows who sleeps and why, what was skipped and why, and what is left to spend."""

import pytest
from playwright.async_api import ViewportSize

from tests.browser.chromium import chromium
from tests.browser.test_home_page import HOSTILE, signed_in, watch
from tests.integration.gate.spending import costs, paid
from tests.integration.http.serving import house
from wakeful.models.scripted import Scripted
from wakeful.vocabulary.heartbeat import HeartbeatRules

WHOLE_DAY = 100_000  # tokens that cost what an agent may spend in a day
HOUR_MS = 3_600_000
SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}


def spender() -> Scripted:
    return paid([costs(WHOLE_DAY), costs(1, "thanks")])


async def test_the_page_tells_who_sleeps_what_was_skipped_and_what_is_left():
    async with (
        house(spender(), heartbeat=HeartbeatRules()) as home,
        chromium() as context,
        home.client(home.operator) as client,
    ):
        page = await signed_in(context, home)
        wrong = watch(page)
        agent = page.locator("#agents > li")
        await agent.get_by_text("$0.00 of $1.00 spent today").wait_for()
        await agent.get_by_text("wakes in 30 min").wait_for()

        await home.runtime.ask("spend it all")
        await home.runtime.send("more?", session="shop")
        await client.post("/api/sessions/main/sleep", json={"seconds": 7200, "reason": HOSTILE})
        await client.post("/api/agents/main/heartbeat", json={"action": "now"})
        await agent.get_by_text("1 wait for more:").wait_for()
        await agent.get_by_text("heartbeat, ").wait_for()
        shown = await agent.inner_text()
        made = await agent.locator("img, script").count()

        await home.runtime.set_quiet(home.runtime.clock.now() + 20 * HOUR_MS)
        await client.post("/api/budgets/raise", json={"agent": "main", "money": 1.0})
        await agent.get_by_text("of $2.00 spent today").wait_for()
        raised = await agent.inner_text()

    assert "agent:main:main sleeps until " in shown
    assert shown.count(HOSTILE) == 1
    assert made == 0
    assert "skipped, asleep" in shown
    assert "wakeful budget raise 1.00 --agent main" in shown
    assert "wait for more" not in raised
    assert "quiet until " in raised
    assert wrong == []


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_on_the_page_is_wider_than_the_screen(size: str):
    async with house() as home, chromium() as context, home.client(home.operator) as client:
        await home.runtime.ask("hello")
        reason = "waiting-for-a-very-long-word-" * 10
        await client.post("/api/sessions/main/sleep", json={"seconds": 600, "reason": reason})
        page = await signed_in(context, home)
        await page.set_viewport_size(SIZES[size])
        await page.get_by_text("sleeps until").wait_for()
        wide = await page.evaluate("document.documentElement.scrollWidth")
        box = await page.locator("#form button").bounding_box()

    assert wide <= SIZES[size]["width"]
    assert box is not None
    assert box["x"] + box["width"] <= SIZES[size]["width"]
