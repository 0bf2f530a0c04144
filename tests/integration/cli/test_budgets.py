"""A demo server that has just started is small, and has loaded nothing that it does not need."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.children import die_with_parent
from tests.patience import patience

MEMORY_MB = 80  # about 58 are used
MODULES = 950  # about 750 are loaded
# Loaded by whoever first needs them; pydantic is not among them, since Typer reads options by it.
HEAVY = (
    "anthropic",
    "asyncpg",
    "fastapi",
    "google.genai",
    "mcp",
    "openai",
    "opentelemetry",
    "playwright",
    "pydantic_ai",
    "requests",
    "rich",
    "tiktoken",
)
EXIT_S = patience(15)


@dataclass(frozen=True)
class Started:
    """What a server holds once it listens."""

    memory_mb: float
    modules: frozenset[str]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Started:
    if sys.platform != "linux":
        pytest.skip("reads memory use from /proc")
    home = tmp_path_factory.mktemp("home")
    with (home / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "wakeful", "up", "--json"],
            env={**os.environ, "WAKEFUL_HOME": str(home), "WAKEFUL_PORT": "0"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=die_with_parent,
        )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"]
        memory_mb = _resident_mb(process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=EXIT_S)
    told = (home / "stderr").read_text()
    return Started(memory_mb, frozenset(re.findall(r"^import time:.*\| +(\S+)$", told, re.M)))


def _resident_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_a_demo_server_loads_nothing_heavy(started: Started) -> None:
    loaded = [name for name in HEAVY if name in started.modules]

    assert "wakeful.runtime" in started.modules
    assert loaded == []


def test_a_demo_server_loads_few_modules(started: Started) -> None:
    assert len(started.modules) < MODULES


def test_a_demo_server_is_small(started: Started) -> None:
    assert started.memory_mb < MEMORY_MB
