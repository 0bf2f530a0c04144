"""Shared by the browser tests: the Chromium of the system, without a window."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from playwright.async_api import BrowserContext, Page, async_playwright

from tests.server_process import ServerProcess

PATIENCE_S = 30.0  # EventSource waits three seconds between its tries


def executable() -> str:
    """Return the path of a Chromium, or skip the test."""
    path = shutil.which("chromium")
    if path is not None:
        return path
    pytest.skip("no Chromium here (scripts/install-test-tools installs it on Debian)")


@asynccontextmanager
async def chromium(*flags: str) -> AsyncGenerator[BrowserContext, None]:
    """Run a browser without a past, and without its sandbox, which refuses to be root's."""
    path = executable()
    own = "--disable-dev-shm-usage"  # it is scarce in containers
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[own, *flags])
        try:
            yield await browser.new_context()
        finally:
            await browser.close()


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
