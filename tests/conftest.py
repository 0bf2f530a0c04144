"""Fixtures that tests of several rooms share."""

import resource
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres_server import PostgresServer

WANTED_FILES = 4096  # both ends of every connection of a flood are in this process


# How long one example takes says more about the machine than about the code.
settings.register_profile("wakeful", deadline=None)
settings.load_profile("wakeful")


def pytest_configure() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    wanted = WANTED_FILES if unlimited else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the whole run, started when a test first asks for it."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a new, empty database."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)
