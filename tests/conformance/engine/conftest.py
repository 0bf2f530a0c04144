"""Every promise of the engine is proved on each database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wakeful.settings import Settings

SettingsFor = Callable[..., Settings]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def settings_for(request: pytest.FixtureRequest, tmp_path: Path) -> SettingsFor:
    """Make settings of a runtime on this database; the same one each time it is called."""
    match request.param:
        case "memory":
            return Settings
        case "sqlite":
            return lambda **rest: Settings(home=tmp_path / "home", **rest)
        case _:
            url: str = request.getfixturevalue("postgres_url")
            return lambda **rest: Settings(database=url, **rest)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> SettingsFor:
    """As `settings_for`, but only databases that outlive the process."""
    if request.param == "sqlite":
        return lambda **rest: Settings(home=tmp_path / "home", **rest)
    url: str = request.getfixturevalue("postgres_url")
    return lambda **rest: Settings(database=url, **rest)
