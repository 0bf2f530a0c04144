"""The supervisor by itself, as a program with a lifeline."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import die_with_parent
from wakeful.tools import supervisor

IGNORING = "trap '' TERM; echo ready; while :; do sleep 0.02; done"


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", supervisor.__name__, "-", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def cut_off(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)]
)
def test_it_ends_with_the_code_of_its_command(script: str, code: int) -> None:
    with start("/bin/sh", "-c", script) as process:
        assert process.wait() == code


def test_a_command_that_cannot_be_run_is_told() -> None:
    with start("/no/such/program") as process:
        assert said(process) == "/no/such/program: No such file or directory\n"
        assert process.wait() == supervisor.CANNOT_RUN


def test_a_cut_lifeline_asks_the_command_to_end() -> None:
    with start("/bin/sh", "-c", "echo ready; exec sleep 600") as process:
        said(process)
        cut_off(process)

        assert process.wait() == 128 + 15


def test_a_command_that_does_not_end_when_asked_is_killed() -> None:
    with start("/bin/sh", "-c", IGNORING) as process:
        said(process)
        cut_off(process)

        assert process.wait() == 128 + 9


def test_it_cannot_be_ended_by_a_polite_signal_of_its_command() -> None:
    with start("/bin/sh", "-c", "kill -TERM $PPID; kill -INT $PPID; echo still; exit 3") as process:
        assert said(process) == "still\n"
        assert process.wait() == 3


def test_its_command_is_not_deaf_to_signals() -> None:
    with start("/bin/sh", "-c", "kill -TERM $$; echo deaf") as process:
        assert process.wait() == 128 + 15


def test_what_is_left_of_a_command_ends_with_it(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    script = (
        f"setsid sh -c 'trap \"\" TERM; echo $$; echo > {pipe}; exec env -i sleep 600' & cat {pipe}"
    )

    with start("/bin/sh", "-c", script) as process:
        left = int(said(process))

        assert process.wait() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(left, 0)


def test_a_tree_that_grows_while_it_is_cut_down_is_cut_down() -> None:
    # Each process starts the next and ends: by the time one is seen it is gone.
    script = "f() { sleep 0.002; f & }; f & g() { sleep 0.003; g & }; g & echo ready; wait; sleep 9"

    with start("/bin/sh", "-c", script) as process:
        said(process)
        cut_off(process)

        assert process.wait() in (128 + 9, 128 + 15)
        assert process.stdout is not None
        assert process.stdout.read() == ""  # nobody holds the pipe any more
