"""The stores that every promise is tested on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store.tables import TABLES
from wakeful.store.database import Store
from wakeful.store.migrations import Migration
from wakeful.store.postgres import open_postgres
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import SystemClock

Opener = Callable[..., Awaitable[Store]]


@pytest.fixture
def open_file(tmp_path: Path) -> Opener:
    async def opened(migrations: Sequence[Migration] = (TABLES,), **options: Any) -> Store:
        path = tmp_path / "home" / "wakeful.db"
        return await open_sqlite(path, clock=SystemClock(), migrations=migrations, **options)

    return opened


@pytest.fixture
def open_memory() -> Opener:
    async def opened(migrations: Sequence[Migration] = (TABLES,), **options: Any) -> Store:
        return await open_sqlite(None, clock=SystemClock(), migrations=migrations, **options)

    return opened


@pytest.fixture
def open_on_postgres(postgres_url: str) -> Opener:
    async def opened(migrations: Sequence[Migration] = (TABLES,), **options: Any) -> Store:
        return await open_postgres(
            postgres_url, clock=SystemClock(), migrations=migrations, **options
        )

    return opened


@pytest.fixture(params=["open_file", "open_memory", "open_on_postgres"])
def opener(request: pytest.FixtureRequest) -> Opener:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["open_file", "open_on_postgres"])
def lasting_opener(request: pytest.FixtureRequest) -> Opener:
    """Only the stores that outlive being closed."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def store(opener: Opener) -> AsyncIterator[Store]:
    opened = await opener()
    yield opened
    await opened.close()
