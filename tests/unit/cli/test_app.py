"""The tree of commands is cheap to load and complete."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from wakeful import __version__
from wakeful.cli.app import tree
from wakeful.cli.plain_values import spare_plain_values
from wakeful.cli.reference import reference
from wakeful.vocabulary.queueing import Mode

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
    *("httpx2", "pydantic", "yaml", "anyio", "wakeful.cli.up", "wakeful.cli.care"),
    *("wakeful.runtime", "wakeful.assembly", "wakeful.settings.load", "wakeful.tools"),
)
ASKING = (
    *("status", "why last", "tail", "halt", "resume", "login", "send hello", "chat hello"),
    *("sessions list", "sessions show main", "sessions search x", "sessions reset main"),
    *("sessions fork main", "sessions compact main", "sessions rm web:x", "sessions export main"),
    *("sessions attachments main", "agents list", "agents show main", "tokens list"),
    *("tokens add x --scope send", "tokens revoke x", "send hello --priority now"),
)
ALONE = ("--version", "logs")  # ask nobody
LIBRARIES = "import asyncio, http.client, typer"  # read options, speak HTTP
RATIO = 2.0  # about 1.3


def test_no_common_verb_loads_the_engine_or_the_other_verbs(tmp_path: Path):
    loaded = loaded_by(*ASKING, *ALONE, home=tmp_path)

    assert "wakeful.cli.look" in loaded["status"]
    assert "wakeful.cli.client" in loaded["chat hello"]
    assert {
        verb: found
        for verb, modules in loaded.items()
        if (found := [name for name in SPARED if name in modules])
    } == {}


def test_options_are_read_whether_or_not_they_are_plain():
    """What needs no reading passes typer by, and nothing else does."""
    command: Any = typer.main.get_command(tree())
    spare_plain_values(command)
    wanted: dict[str, Any] = {}

    def note(**values: Any) -> None:
        wanted.update(values)

    command.commands["send"].callback = note

    command(
        ["send", "hi", "--wait", "2.5", "-f", "a", "-f", "b", "--mode", "steer", "--home", "h"],
        standalone_mode=False,
    )
    with pytest.raises(Exception, match="120") as refused:
        command(["send", "hi", "--wait", "121"], standalone_mode=False)

    assert (wanted["text"], wanted["wait"], wanted["mode"]) == ("hi", 2.5, Mode.STEER)
    assert (wanted["file"], wanted["home"]) == ([Path("a"), Path("b")], Path("h"))
    assert (wanted["priority"], wanted["dedup_key"], wanted["json"]) == ("next", None, False)
    assert "BadParameter" in type(refused.value).__name__


def test_a_verb_takes_little_more_than_the_libraries_it_stands_on(tmp_path: Path):
    environ = {**os.environ, "WAKEFUL_HOME": str(tmp_path), "WAKEFUL_URL": "http://127.0.0.1:9"}
    bare = min(cpu_s(["-c", LIBRARIES], environ) for _ in range(4))
    verb = min(cpu_s(["-m", "wakeful", "status"], environ) for _ in range(4))

    assert verb < bare * RATIO, f"{verb:.3f} s for a verb, {bare:.3f} s for the libraries"


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


PROBE = """
import json, os, sys
from wakeful.cli.app import main

for words in sys.argv[1:]:
    reading, writing = os.pipe()
    if os.fork() == 0:
        sys.argv = ["wakeful", *words.split()]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            main()
        except SystemExit:
            pass
        os.write(writing, json.dumps(sorted(sys.modules)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        print(json.dumps([words, json.load(told)]))
    os.wait()
"""


def loaded_by(*verbs: str, home: Path) -> dict[str, list[str]]:
    """Return what each verb loads that finds nobody at the server's address."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE, *verbs],
        env={**os.environ, "WAKEFUL_HOME": str(home), "WAKEFUL_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(line) for line in answer.stdout.splitlines())


def cpu_s(arguments: list[str], environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
