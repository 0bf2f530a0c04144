"""Somebody who reads a page and types what it says, in a home and at a server of their own."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.children import die_with_parent, talk
from tests.integration.cli.shell import Home, Server
from tests.patience import patience

PATIENCE_S = patience(20)
READ_AGAIN = "settings read again"

# What a reader puts in the place of what a page can only give an example of.
_IDS = re.compile(r"\b(?:en_0198|tr_019d…|3f2a9c1b00d1e2f3)")
_SHELL = re.compile(r"[|>&;$`(~]")

# Lines that are somebody else's program, and where they are proved instead.
ELSEWHERE = {
    "make test": "this is part of it",
    "loginctl ": "belongs to the machine",
    "docker ": "test_the_container_is_built_and_answers",
    "createuser ": "needs PostgreSQL's own user",
    "createdb ": "needs PostgreSQL's own user",
}


class Newcomer:
    """A person with one terminal, and a server that they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.desk = folder / "desk"  # where they type
        self.disk = folder / "disk"
        self.desk.mkdir()
        self.disk.mkdir()
        self.home = Home(folder / ".wakeful")
        # As on a machine of their own: everything is where it is by default.
        del self.home.environ["WAKEFUL_HOME"]
        tools = f"{Path(sys.executable).parent}:{self.home.environ['PATH']}"
        self.home.environ |= {"HOME": str(folder), "PATH": tools, "NO_COLOR": "1"}
        self._server: Server | None = None
        self._said = ""  # by the last command
        self._acts: dict[str, Callable[[str], None]] = {
            r"make up": lambda _: self.start(),
            r"wakeful up\b.*": lambda line: self._begin_again(*shlex.split(line)[2:]),
            r"systemctl --user (?:enable --now|start) wakeful": lambda _: self.start(),
            r"systemctl --user stop wakeful": lambda _: self.stop(signal.SIGTERM),
            r"systemctl --user reload wakeful": lambda _: self._reload(),
            r"kill -9 \d+": lambda _: self.stop(signal.SIGKILL),
        }

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.told["url"]

    def start(self, *options: str) -> None:
        """Start the server, if it does not run."""
        if self._server is not None:
            return
        environ = self.home.environ
        process = talk(["-m", "wakeful", "up", "--json", *options], environ=environ)
        assert process.stdout is not None
        told = process.stdout.readline()
        assert told, process.communicate()[1]
        self._server = Server(process, json.loads(told))

    def _begin_again(self, *options: str) -> None:
        self.stop(signal.SIGTERM)
        self.start(*options)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._server is not None:
            self._server.signal(how)
            self._server.process.communicate(timeout=PATIENCE_S)
            self._server = None

    def _reload(self) -> None:
        """Have the settings read again."""
        assert self._server is not None
        log = self.folder / ".wakeful/wakeful.log"
        lines = log.read_text().count("\n")
        self._server.signal(signal.SIGHUP)
        self.home.log_line(READ_AGAIN, skip=lines)

    def settle_in(self) -> None:
        """Have what the pages take for granted: a conversation, the demo model, some files."""
        self.type("wakeful config set agents.main.model demo")
        self._bring_along()
        if not (self.desk / "old.jsonl").exists():
            self._said_twice()
            self.type("wakeful sessions export main -o old.jsonl")
            picture = self.desk / "photo.jpg"
            picture.write_bytes(b"\xff\xd8\xff\xe0" + bytes(64))
            (self.desk / "a.csv").write_text("a,b\n1,2\n")
            (self.desk / "b.csv").write_text("a,b\n1,3\n")

    def _bring_along(self) -> None:
        """Have what another program left behind."""
        file = self.folder / ".nanobot/workspace/cron/jobs.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        daily = {"kind": "cron", "expr": "0 9 * * *", "tz": None}
        bound = {"kind": "agent_turn", "message": "look", "sessionKey": "telegram:1"}
        jobs = [
            {"id": "a1", "name": "daily monitor", "schedule": daily, "payload": bound},
            {"id": "a2", "name": "dentist", "schedule": {"kind": "at", "atMs": 1}}
            | {"payload": bound},
            {"id": "dream", "name": "dream", "schedule": daily}
            | {"payload": {"kind": "system_event", "message": ""}},
        ]
        file.write_text(json.dumps({"version": 1, "jobs": jobs}))

    def _said_twice(self) -> None:
        for text in ("what is 3*4", "there is no harbour here"):
            self.type(f"wakeful send {shlex.quote(text)} --wait 30")

    def type(self, line: str) -> str:
        """Do what a line of a page says; return what was printed."""
        for pattern, act in self._acts.items():
            if re.fullmatch(pattern, line.partition(" #")[0].strip()):
                act(line)
                return ""
        if line.startswith(tuple(ELSEWHERE)):
            return ""
        self._said = self._run(self._meant(line))
        return self._said

    def _run(self, line: str) -> str:
        if line.startswith("wakeful ") and not _SHELL.search(line):
            arguments = ["-m", "wakeful", *shlex.split(line, comments=True)[1:]]
            folder, environ = self.desk, self.home.environ
            process = talk(arguments, environ=environ, has_input=True, folder=folder)
            said, errors = process.communicate("hello\n", timeout=PATIENCE_S)
            code = process.returncode
        else:
            answer = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", line],
                cwd=self.desk,
                env=self.home.environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
                preexec_fn=die_with_parent,
            )
            said, errors, code = answer.stdout, answer.stderr, answer.returncode
        assert code == 0, f"{line}\n{errors}"
        assert "Traceback" not in errors
        return said

    def _meant(self, line: str) -> str:
        """Return a line with the reader's own ids, folders, keys and addresses in it."""
        line = _IDS.sub(lambda found: self._id_like(found[0]), line)
        if "WAKEFUL_TOKEN=…" in line:
            line = line.replace("WAKEFUL_TOKEN=…", f"WAKEFUL_TOKEN={self._said.split()[-1]}")
        place = self.url.removeprefix("http://") if self._server is not None else ""
        for example, own in {
            "https://agents.example.com": f"http://{place}",
            "localhost:8484": place,
            "127.0.0.1:8484": place,
            "/mnt/disk": str(self.disk),
            "sk-…": "sk-of-the-reader",
            "$TOKEN": "$(cat ~/.wakeful/operator.token)",
        }.items():
            line = line.replace(example, own)
        return line

    def _id_like(self, example: str) -> str:
        if example.startswith("en_"):
            self._run("wakeful send hello --wait 30")  # a reset may have left nothing
            return self._items("entries")[-2]["id"]
        if example.startswith("tr_"):
            return self._items("transcripts")[-1]["id"]
        return self._items("attachments")[0]["id"]

    def _items(self, kind: str) -> list[Any]:
        token = (self.folder / ".wakeful/operator.token").read_text().strip()
        request = Request(
            f"{self.url}/api/sessions/main/{kind}", headers={"Authorization": f"Bearer {token}"}
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["items"]


def lines_of(block: str) -> Iterator[str]:
    """Yield the commands of a block; one that goes on in the next line is one."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:\+00:00|Z)?"
_LIKE = {  # what differs from run to run: as a page shows it, and as it may be
    _TIME: _TIME,
    r"\d{8}T\d{9}Z": r"\d{8}T\d{9}Z",
    r"[a-z]{2}_[0-9a-f]{6,}": r"[a-z]{2}_[0-9a-f]+",
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day": r"\w+day",
    r"127\.0\.0\.1:\d+": r"127\.0\.0\.1:\d+",
    r"\(process \d+\)": r"\(process \d+\)",
    r"\d+ s ago": r"(?:\d+ (?:s|min) ago|just now)",
    r"~/": r"(?:~|/\S*)/",
    r"…": r".*",
    r"\s+": r"\s+",
}


def is_shown(shown: str, said: str) -> bool:
    """Tell whether a command said what a page shows, but for ids, times and what is left out."""
    pieces = re.split("(" + "|".join(f"(?:{one})" for one in _LIKE) + ")", shown.strip())
    pattern = "".join(
        next((likeness for one, likeness in _LIKE.items() if re.fullmatch(one, piece)), None)
        or re.escape(piece)
        for piece in pieces
        if piece
    )
    return re.fullmatch(pattern, said.strip()) is not None
