"""The root of the package is small, importing it is cheap, and the rest has one address."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

import wakeful
from tests.patience import patience
from tests.public_names import public_names

IMPORT_BUDGET_S = 0.6  # CPU time; a quiet machine needs about a third of it
MEMORY_BUDGET_MB = 45
HEAVY = ("pydantic", "fastapi", "starlette", "asyncpg", "rich", "openai", "anthropic", "mcp")


def test_the_root_exports_just_these_names():
    assert wakeful.__all__ == [
        "Agent",
        "Attachment",
        "Event",
        "Permanent",
        "Receipt",
        "Runtime",
        "Settings",
        "Transient",
        "Turn",
        "WakefulError",
        "ask",
        "tool",
    ]
    assert public_names()["wakeful"] == frozenset(wakeful.__all__)


@pytest.mark.parametrize("module", public_names())
def test_every_public_name_is_where_the_reference_says(module: str):
    found = import_module(module)

    assert {name for name in public_names()[module] if not hasattr(found, name)} == set()


def test_a_public_name_has_one_address():
    names = [name for found in public_names().values() for name in found]

    assert len(names) == len(set(names))


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory use from /proc")
def test_importing_the_package_is_cheap_and_loads_nothing_heavy():
    probe = (
        "import json, sys, time; import wakeful; wakeful.Runtime; import pathlib;"
        "status = pathlib.Path('/proc/self/status').read_text();"
        "resident = int(status.split('VmRSS:')[1].split()[0]) / 1024;"
        "print(json.dumps([time.process_time(), resident, sorted(sys.modules)]))"
    )

    def measured() -> tuple[float, float, list[str]]:
        words = [sys.executable, "-c", probe]
        answer = subprocess.run(words, capture_output=True, text=True, check=True)
        cpu_s, resident_mb, modules = json.loads(answer.stdout)
        return cpu_s, resident_mb, modules

    # What it costs is the least that it takes: everything above is what runs beside it.
    cpu_s, resident_mb, modules = min(measured() for _ in range(3))

    assert cpu_s < patience(IMPORT_BUDGET_S)
    assert resident_mb < MEMORY_BUDGET_MB
    assert not [name for name in HEAVY if name in modules]


def test_a_name_that_is_none_is_no_attribute():
    wrong = "Nothing"

    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(wakeful, wrong)
    assert "Runtime" in dir(wakeful)
