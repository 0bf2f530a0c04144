"""The tree of commands is cheap to load and complete."""

import os
import subprocess
import sys

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
        "from wakeful.cli.app import app\n"
        "try:\n    app(['--help'], prog_name='wakeful')\n"
        "except SystemExit:\n    pass\n"
        "sys.stderr.write(str('rich' in sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=os.environ
    )

    assert answer.stderr == "False"
    assert "Usage: wakeful" in answer.stdout
    assert "..." not in answer.stdout.partition("Commands:")[2]  # no sentence is cut
