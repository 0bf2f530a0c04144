"""One process of stand-in providers for all tests; only those here are led to it."""

from collections.abc import Iterator

import pytest

from wakeful.testing.providers.process import Providers, providers


@pytest.fixture(scope="session")
def shared_stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Providers]:
    with providers(tmp_path_factory.mktemp("stand in")) as running:
        yield running


@pytest.fixture(scope="module")
def stand_in(shared_stand_ins: Providers) -> Iterator[Providers]:
    """Stand-ins, with an environment that leads to them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shared_stand_ins.environment.items():
            patch.setenv(name, value)
        yield shared_stand_ins
