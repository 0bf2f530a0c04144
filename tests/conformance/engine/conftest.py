"""Every promise of the engine is proved on each database."""

from pathlib import Path
from typing import Protocol

import pytest

from wakeful.settings.settings import Settings


class SettingsFor(Protocol):
    """Makes settings of a runtime on one database; the same one each time it is called."""

    def __call__(self, *, drain_s: float = 30.0) -> Settings: ...


def on(request: pytest.FixtureRequest, tmp_path: Path) -> SettingsFor:
    match request.param:
        case "memory":
            return Settings
        case "sqlite":
            home = tmp_path / "home"
            return lambda *, drain_s=30.0: Settings(home=home, drain_s=drain_s)
        case _:
            url: str = request.getfixturevalue("migrated_url")
            return lambda *, drain_s=30.0: Settings(database=url, drain_s=drain_s)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def settings_for(request: pytest.FixtureRequest, tmp_path: Path) -> SettingsFor:
    """Settings on each database."""
    return on(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> SettingsFor:
    """Settings on each database that outlives the process."""
    return on(request, tmp_path)
