"""One process of stand-in providers for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.integration.providers.scenes import WIRES
from wakeful.models.library import Connection
from wakeful.testing.providers.process import Providers, providers


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Providers]:
    """Stand-ins, with an environment that leads to them and the library that speaks to them."""
    with (
        providers(tmp_path_factory.mktemp("stand in")) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in running.environment.items():
            patch.setenv(name, value)
        for name in WIRES:
            Connection(name)  # takes seconds, which no test should wait for
        yield running
