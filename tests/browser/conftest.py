"""One Chromium, and hence one event loop, for all tests of a browser, and their time limit."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.browser import chromium

HERE = Path(__file__).parent
TIMEOUT_S = 90  # a real browser; every wait inside is shorter


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def shared_browser() -> AsyncIterator[None]:
    yield
    await chromium.close()
