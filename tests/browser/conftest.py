"""The time that a browser may take."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
TIMEOUT_S = 90  # a real browser on a machine that may be busy; every wait inside is shorter


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
