"""The tree of commands is cheap to load and complete."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from wakeful import __version__
from wakeful.cli.app import with_dashed_words
from wakeful.cli.reference import reference

VERBS = (
    "up init chat send status tail logs why halt resume doctor completion version sessions+list "
    "sessions+show agents+list agents+show tokens+add tokens+list tokens+revoke config+get "
    "config+set config+validate config+schema backup+create backup+verify backup+restore "
    "db+migrate db+check"
)


def test_every_verb_is_there():
    page = reference()

    assert [verb for verb in VERBS.split() if f"| `{verb.replace('+', ' ')}" not in page] == []


def test_rich_is_loaded_only_for_a_terminal():
    probe = (
        "import sys\n"
        "from wakeful.cli.app import tree\n"
        "try:\n    tree()(['--help'], prog_name='wakeful')\n"
        "except SystemExit:\n    pass\n"
        "sys.stderr.write(str('rich' in sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=os.environ
    )

    assert answer.stderr == "False"
    assert "Usage: wakeful" in answer.stdout
    assert "..." not in answer.stdout.partition("Commands:")[2]  # no sentence is cut


SPARED = (  # what no verb needs that asks a server
    *("apsw", "prometheus_client", "rich", "prompt_toolkit", "starlette", "uvicorn"),
    *("wakeful.runtime", "wakeful.assembly", "wakeful.settings.load", "wakeful.tools"),
)
LIBRARIES = "import asyncio, httpx2, pydantic, typer"  # read options, speak HTTP
RATIO = 2.0  # about 1.4


def test_a_verb_that_asks_a_server_loads_neither_the_engine_nor_the_other_verbs(tmp_path: Path):
    modules = loaded_by("status", home=tmp_path, url="http://127.0.0.1:9")

    assert "wakeful.cli.look" in modules
    assert [name for name in SPARED if name in modules] == []
    assert [name for name in ("wakeful.cli.up", "wakeful.cli.care") if name in modules] == []


def test_a_verb_takes_little_more_than_the_libraries_it_stands_on(tmp_path: Path):
    environ = {**os.environ, "WAKEFUL_HOME": str(tmp_path), "WAKEFUL_URL": "http://127.0.0.1:9"}
    bare = min(cpu_s(["-c", LIBRARIES], environ) for _ in range(4))
    verb = min(cpu_s(["-m", "wakeful", "status"], environ) for _ in range(4))

    assert verb < bare * RATIO, f"{verb:.3f} s for a verb, {bare:.3f} s for the libraries"


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("harbour -river", "harbour -- -river"),
        ("-sea harbour -s old -n 5", "harbour -s old -n 5 -- -sea"),
        ("harbour -n5 --role user -x --json", "harbour -n5 --role user --json -- -x"),
        ("harbour -- -river", "harbour -- -river"),
        ("harbour --session old -h", "harbour --session old -h"),
        ("harbour - river", "harbour - river"),
    ],
)
def test_a_word_with_a_dash_is_left_out_of_a_search_and_no_option(typed: str, read: str):
    verb = ["sessions", "search"]

    assert with_dashed_words([*verb, *typed.split()]) == [*verb, *read.split()]
    assert with_dashed_words(["send", *typed.split()]) == ["send", *typed.split()]


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_the_version_is_told_either_way(words: list[str]):
    assert said(*words).startswith(f"wakeful {__version__}")


def test_short_questions_are_answered(tmp_path: Path):
    assert said("-h") == said("--help")
    assert "Usage: wakeful sessions list" in said("sessions", "list", "-h")
    assert "_wakeful_completion" in said("completion", "bash")


def test_a_verb_that_is_none_is_told_with_a_near_one():
    answer = subprocess.run(
        [sys.executable, "-m", "wakeful", "statsu"], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 2
    assert "status" in answer.stderr


def said(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "wakeful", *words], capture_output=True, text=True, check=True
    ).stdout


def loaded_by(*words: str, home: Path, url: str) -> list[str]:
    probe = (
        "import json, sys\n"
        "from wakeful.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", probe, *words],
        env={**os.environ, "WAKEFUL_HOME": str(home), "WAKEFUL_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def cpu_s(arguments: list[str], environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
