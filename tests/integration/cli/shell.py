"""The command line as a person has it: real processes in a home of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.children import Talker, die_with_parent, talk
from tests.patience import patience

COMMAND = (sys.executable, "-m", "wakeful")
PATIENCE_S = patience(15)


class Home:
    """A home folder, and the commands that are run in it."""

    def __init__(self, folder: Path, *, has_libraries: bool = False, **environ: str) -> None:
        self.folder = folder
        self._has_libraries = has_libraries  # its server speaks to a provider, or to MCP servers
        kept = {
            name: value
            for name, value in os.environ.items()
            if "WAKEFUL" not in name and not name.endswith("_API_KEY")
        }
        own = {"WAKEFUL_HOME": str(folder), "WAKEFUL_PORT": "0", "COLUMNS": "200"}
        self.environ = {**kept, **own, **environ}

    def run(self, *arguments: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = talk(["-m", "wakeful", *arguments], environ=self.environ, has_input=True)
        told, errors = process.communicate(said, timeout=PATIENCE_S)
        assert process.returncode is not None
        return subprocess.CompletedProcess(arguments, process.returncode, told, errors)

    def ok(self, *arguments: str, said: str | None = None) -> str:
        """Run a command that must work, and return what it printed."""
        answer = self.run(*arguments, said=said)
        assert answer.returncode == 0, answer.stderr
        assert "Traceback" not in answer.stderr
        return answer.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def start(self, *arguments: str, umask: int = -1) -> "Talker | subprocess.Popen[str]":
        """Start a command that goes on."""
        return talk(
            ["-m", "wakeful", *arguments],
            environ=self.environ,
            umask=umask,
            has_libraries=self._has_libraries and arguments[0] == "up",
        )

    @contextmanager
    def up(self, *arguments: str, umask: int = -1) -> "Generator[Server, None, None]":
        """Run the server for as long as the block lasts, on any free port."""
        process = self.start("up", "--port", "0", "--json", *arguments, umask=umask)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise AssertionError(process.communicate()[1])
            yield Server(process, json.loads(line))
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def log_line(self, words: str, *, after: str = "", skip: int = 0) -> str:
        """Return the first line of the log with these words (after others), once there is one."""
        with subprocess.Popen(
            [
                "tail",
                "-n",
                f"+{skip + 1}",
                "--follow=name",
                "--retry",
                str(self.folder / "wakeful.log"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=die_with_parent,
        ) as following:
            assert following.stdout is not None
            try:
                if after:
                    next(line for line in following.stdout if after in line)
                return next(line for line in following.stdout if words in line)
            finally:
                following.kill()


class Server:
    """A running `wakeful up`."""

    def __init__(self, process: "Talker | subprocess.Popen[str]", told: dict[str, Any]) -> None:
        self.process = process
        self.told = told

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.ended()


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything about the files of a folder that a change would change.

    The index of a log (`-shm`) is not kept: it says who reads, and is made anew from the log.
    """
    return {
        str(file.relative_to(folder)): (
            file.stat().st_mtime_ns,
            file.stat().st_mode,
            file.read_bytes(),
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.endswith("-shm")
    }


def each(lines: Sequence[str]) -> list[Any]:
    return [json.loads(line) for line in lines]
