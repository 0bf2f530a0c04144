"""Homes for the tests of the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that does not exist yet."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def awake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which a server runs, for all tests of a module."""
    shared = Home(tmp_path_factory.mktemp("awake") / "home")
    with shared.up():
        yield shared
