"""`logs`: the server's log, and what is added to it."""

import asyncio
import os
import re
from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.exits import Missing
from wakeful.cli.output import safe_lines
from wakeful.telemetry.log import LARGEST_LOG, NAME
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.record import Record

LOOK_EVERY_S = 0.2

_RECORD = re.compile(r"(\d{4}-\S+ \S+) ([A-Z]+) +(\S+): (.*)")

Lines = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")]


def logs(context: CliContext, lines: Lines = 50, follow: Follow = False) -> None:
    """Show the server's log."""
    file = context.home / NAME
    if not file.exists():
        raise Missing(f"there is no log in {context.home}; `wakeful up` writes one")
    for line in _last(file, lines):
        context.out.item(parsed(line), safe_lines(line))
    if follow:
        asyncio.run(_follow(context, file, context.clock))


async def _follow(context: CliContext, file: Path, clock: Clock) -> None:
    reader = _Reader(file)
    while True:
        await clock.sleep(LOOK_EVERY_S)
        for line in reader.fresh():
            context.out.item(parsed(line), safe_lines(line))


class LogLine(Record):
    """One line of the log; one that goes on with the record above has its text alone."""

    text: str
    at: str | None = None
    level: str | None = None
    name: str | None = None


def parsed(line: str) -> LogLine:
    """Return what a line of the log says, part by part."""
    found = _RECORD.fullmatch(line)
    if found is None:
        return LogLine(text=line)
    at, level, name, text = found.groups()
    return LogLine(at=at.replace(" ", "T"), level=level.lower(), name=name, text=text)


class _Reader:
    """Reads what is added to a file, also after another one has taken its name."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = file.stat().st_size
        self._inode = file.stat().st_ino
        self._rest = b""

    def fresh(self) -> list[str]:
        """Return the whole lines that were added since the last look."""
        try:
            with self._file.open("rb") as opened:
                now = os.fstat(opened.fileno())
                if now.st_ino != self._inode or now.st_size < self._position:
                    self._position, self._inode, self._rest = 0, now.st_ino, b""
                opened.seek(self._position)
                added = opened.read(LARGEST_LOG)
        except FileNotFoundError:  # between two logs
            return []
        self._position += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


def _last(file: Path, count: int) -> list[str]:
    with file.open("rb") as opened:
        opened.seek(max(0, os.fstat(opened.fileno()).st_size - 400 * max(count, 1) - 4096))
        text = opened.read().decode("utf-8", "replace")
    return text.splitlines()[-count:] if count else []
