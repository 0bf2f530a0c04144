"""The stores that transcripts and search are tried on."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from wakeful.store.database import Store
from wakeful.store.opening import open_store
from wakeful.vocabulary.clock import SystemClock


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path | None:
    match request.param:
        case "memory":
            return None
        case "sqlite":
            return tmp_path / "wakeful.db"
        case _:
            return request.getfixturevalue("migrated_url")


@pytest.fixture
async def store(address: str | Path | None) -> AsyncGenerator[Store, None]:
    opened = await open_store(address, clock=SystemClock())
    yield opened
    await opened.close()
