"""What tests of several rooms share: fixtures, signals, and what is told of a failure."""

import resource
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import postgres_server
from tests.children import heed_signals
from tests.patience import patience
from tests.postgres_server import Databases
from wakeful.testing import kit
from wakeful.testing.providers import process

WANTED_FILES = 4096  # both ends of every connection of a flood are in this process
TOLD_LOGS = ("*.log", "*.stderr")  # of the processes under test
TOLD_LINES = 40

# How long an example takes says more about the machine than about the code. Every run tries the
# same examples, so that one commit is always right or always wrong; `make search` tries new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("same")


def pytest_configure() -> None:
    heed_signals()
    kit.PATIENCE_S = patience(kit.PATIENCE_S)
    process.PATIENCE_S = patience(process.PATIENCE_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    wanted = WANTED_FILES if unlimited else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stretch the time that each test may take, as all other limits."""
    usual = float(config.getini("timeout"))
    for item in items:
        said = item.get_closest_marker("timeout")
        seconds: float = said.args[0] if said else usual
        item.add_marker(pytest.mark.timeout(patience(seconds)), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell of a failure where its ledgers lie, what the processes said and how to repeat it."""
    report = yield
    if report.failed:
        report.sections.append(("to look at", "\n".join(_left_behind(item))))
    # What goes from one test process to another must be UTF-8; hostile words need not be.
    report.sections = [(name, _storable(text)) for name, text in report.sections]
    return report


def _left_behind(item: pytest.Item) -> Iterator[str]:
    yield f"seed: {item.config.getoption('randomly_seed', 'none')}"
    folder: Any = getattr(item, "funcargs", {}).get("tmp_path")
    if not isinstance(folder, Path) or not folder.is_dir():
        return
    yield f"folder: {folder}"
    for ledgers in sorted({file.parent for file in folder.rglob("*.jsonl")}):
        yield f"ledgers: {ledgers}"
    for log in sorted(file for pattern in TOLD_LOGS for file in folder.rglob(pattern)):
        yield f"log: {log}"
        yield from log.read_text(errors="backslashreplace").splitlines()[-TOLD_LINES:]


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """One PostgreSQL for the whole run, started when a test first asks for it."""
    with postgres_server.databases() as found:
        yield found


@pytest.fixture
def postgres_url(databases: Databases) -> Iterator[str]:
    """The address of a new, empty database."""
    name = databases.create()
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def migrated_url(databases: Databases) -> Iterator[str]:
    """The address of a new database that has our tables."""
    name = databases.create(is_migrated=True)
    yield databases.url(name)
    databases.drop(name)
