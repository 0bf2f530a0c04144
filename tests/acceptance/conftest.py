"""Fixtures of the acceptance tests."""

from pathlib import Path

import pytest

from tests.proofs.process import Place

HERE = Path(__file__).parent
TIMEOUT_S = 90  # real processes on a machine that may be busy; every wait inside is shorter


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """The folders of one process under test."""
    return Place(tmp_path)
