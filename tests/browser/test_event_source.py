"""A real `EventSource` sees every stored event once, whatever happens to the server."""

from pathlib import Path

from playwright.async_api import Page

from tests.browser.chromium import Heard, chromium, console
from tests.server_process import ServerProcess, serving
from tests.unit.test_events_are_documented import documented

FOLLOW = """(kinds) => {
    const source = new EventSource("/api/events");
    for (const kind of kinds)
        source.addEventListener(kind, (event) => {
            if (!JSON.parse(event.data).live) heard(event.lastEventId);
        });
    for (const kind of ["gap", "reset"]) source.addEventListener(kind, () => heard(kind));
    return new Promise((resolve) => source.addEventListener("open", () => resolve()));
}"""

OWN = 1  # events of the first start itself, before anybody follows: Activity is made


async def follow(page: Page) -> Heard:
    """Have a page follow the events; when this returns, its stream is open."""
    heard = Heard()
    await heard.listen(page)
    await page.evaluate(FOLLOW, sorted(documented()))
    return heard


async def say(server: ServerProcess, *tabs: Heard) -> None:
    """Have the agent answer, and wait until every tab has seen the last event of it."""
    await server.say("hello")
    for tab in tabs:
        await tab.until(server.cursors()[-1])


async def test_two_tabs_see_each_event_once_over_a_kill_and_a_restart(tmp_path: Path):
    async with serving(tmp_path / "home") as server, chromium() as context:
        one = await follow(await console(context, server))
        page = await context.new_page()
        await page.goto(f"{server.url}/docs")
        two = await follow(page)

        await say(server, one, two)
        await server.kill()
        await server.start()
        await say(server, one, two)
        await server.stop()
        await server.start()
        await say(server, one, two)

        assert one.all == two.all == server.cursors()[OWN:]


async def test_a_kill_in_the_middle_of_the_events_leaves_neither_gap_nor_repeat(tmp_path: Path):
    async with serving(tmp_path / "home") as server, chromium() as context:
        heard = await follow(await console(context, server))
        async with server.client() as client:
            for number in range(30):
                path = f"/api/sessions/api:s{number}/messages"
                assert (await client.post(path, json={"text": "hello"})).status_code == 202
        await server.kill()
        was_heard = len(heard.all)
        await server.start()
        await server.say("hello")
        stored = server.cursors()[OWN:]
        await heard.until(stored[-1])

        assert heard.all[: len(stored)] == stored
        assert was_heard < len(stored)
