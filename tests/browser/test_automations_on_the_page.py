"""The page at `/` shows what is done by the clock: if it is on, when next, and what came of it."""

from tests.browser.chromium import chromium
from tests.browser.test_agents_on_the_page import SIZES
from tests.browser.test_home_page import HOSTILE, signed_in, watch
from tests.integration.http.serving import house
from wakeful.automations.wishes import Wish
from wakeful.testing.kit import wait_for
from wakeful.vocabulary.automation import CronSchedule, EverySchedule


async def test_the_page_tells_of_each_automation_of_its_conversation_and_follows_it():
    hourly = Wish(
        name=HOSTILE,
        schedule=EverySchedule(every_s=3600),
        message=HOSTILE,
        session_key="main",
    )
    elsewhere = Wish(
        name="elsewhere",
        schedule=CronSchedule(expr="0 9 * * *"),
        message="x",
        session_key="system:activity",
    )
    async with house() as home, chromium() as context:
        await home.runtime.add_automation(hourly)
        await home.runtime.add_automation(elsewhere)
        page = await signed_in(context, home)
        wrong = watch(page)
        line = page.locator("#automations > li")
        await line.get_by_text("not run yet").wait_for()
        shown = await line.inner_text()
        made = await line.locator("img, script").count()

        run = await home.runtime.run_automation(HOSTILE)
        await wait_for(home.runtime, "automation.ok", lambda event: event.data["run_id"] == run.id)
        await line.get_by_text("last ok").wait_for()
        await home.runtime.pause_automation(HOSTILE)
        await line.get_by_text("paused").wait_for()
        paused = await line.inner_text()
        await home.runtime.remove_automation(HOSTILE)
        await page.get_by_text("Nothing is done here by the clock.").wait_for()

    assert shown.count(HOSTILE) == 2
    assert "every 1 h" in shown
    assert "next " in shown
    assert made == 0
    assert "next " not in paused
    assert wrong == []


async def test_a_long_automation_is_no_wider_than_a_phone():
    wish = Wish(
        name="a-very-long-name-" * 5,
        schedule=EverySchedule(every_s=90),
        message="waiting-for-a-very-long-word-" * 20,
        session_key="main",
    )
    async with house() as home, chromium() as context:
        await home.runtime.add_automation(wish)
        page = await signed_in(context, home)
        await page.set_viewport_size(SIZES["phone"])
        await page.get_by_text("every 90 s").wait_for()
        wide = await page.evaluate("document.documentElement.scrollWidth")

    assert wide <= SIZES["phone"]["width"]
