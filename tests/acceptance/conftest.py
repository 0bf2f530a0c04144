"""Fixtures of the acceptance tests."""

from pathlib import Path

import pytest

from wakeful.testing.process import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """The folders of one process under test."""
    return Place(tmp_path)
