"""Shared by the browser tests: the Chromium of the system, without a window."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright

from tests.patience import patience
from tests.server_process import ServerProcess

PATIENCE_S = patience(30)  # EventSource waits three seconds between its tries

_running: list[tuple[Playwright, Browser]] = []


def executable() -> str:
    """Return the path of a Chromium, or skip the test."""
    path = shutil.which("chromium")
    if path is not None:
        return path
    pytest.skip("no Chromium here (scripts/install-test-tools installs it on Debian)")


@asynccontextmanager
async def chromium() -> AsyncGenerator[BrowserContext, None]:
    """Have a browser without a past: a context of the one that all tests share."""
    if not _running:
        _running.append(await _started())
    context = await _running[0][1].new_context()
    try:
        yield context
    finally:
        await context.close()


async def close() -> None:
    """Close the browser that the tests have shared, if one was started."""
    for playwright, browser in _running:
        await browser.close()
        await playwright.stop()
    _running.clear()


async def _started() -> tuple[Playwright, Browser]:
    """Start it without a sandbox, which refuses to be root's."""
    path = executable()
    playwright = await async_playwright().start()
    # Shared memory is scarce in containers; a name is made to point here, as an attacker would.
    flags = ["--disable-dev-shm-usage", "--host-resolver-rules=MAP rebound.test 127.0.0.1"]
    return playwright, await playwright.chromium.launch(executable_path=path, args=flags)


async def console(context: BrowserContext, server: ServerProcess) -> Page:
    """Return a page of the server's own, logged in by a code as a console is."""
    page = await context.new_page()
    await page.goto(f"{server.url}/healthz")
    status = await page.evaluate(
        """async (code) => (await fetch("/api/login", {
            method: "POST",
            headers: {"Content-Type": "application/json"},
            body: JSON.stringify({code}),
        })).status""",
        await server.login_code(),
    )
    assert status == 204
    await page.goto(f"{server.url}/docs")
    return page


class Heard:
    """What a page calls out, in the order in which it did."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._came = asyncio.Event()

    async def listen(self, page: Page) -> None:
        """Give a page the function `heard`."""
        await cast("Any", page).expose_function("heard", self._note)

    def _note(self, what: Any) -> None:
        self.all.append(what)
        self._came.set()

    async def until(self, last: Any) -> None:
        """Return when something was heard."""
        async with asyncio.timeout(PATIENCE_S):
            while last not in self.all:
                self._came.clear()
                await self._came.wait()
