"""The server's log: where it is kept, what must not stand in it, and the verb that follows it."""

import asyncio
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.desk import Desk
from wakeful.cli.exits import Missing
from wakeful.cli.output import safe_lines
from wakeful.vocabulary.clock import Clock

NAME = "wakeful.log"
LARGEST_LOG = 10 * 1024 * 1024
OLD_LOGS = 3
LOOK_EVERY_MS = 200
REDACTED = "(hidden)"

Lines = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")]


class Redacting(logging.Formatter):
    """Writes lines, tracebacks included, in which no known secret stands."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        # Longest first: one secret may hold another.
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        for secret in self._secrets:
            line = line.replace(secret, REDACTED)
        return line


def start(home: Path, level: str, secrets: Iterable[str]) -> None:
    """Log to a private file in the home folder, and warnings to standard error too."""
    (home / NAME).touch(mode=0o600)
    file = logging.handlers.RotatingFileHandler(
        home / NAME, maxBytes=LARGEST_LOG, backupCount=OLD_LOGS, encoding="utf-8"
    )
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.WARNING)
    formatter = Redacting(secrets)
    for handler in (file, terminal):
        handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[file, terminal], force=True)


def change_level(level: str) -> None:
    """Log more or less from now on."""
    logging.getLogger().setLevel(level.upper())


def logs(desk: Desk, lines: Lines = 50, follow: Follow = False) -> None:
    """Show the server's log."""
    file = desk.home / NAME
    if not file.exists():
        raise Missing(f"there is no log in {desk.home}; `wakeful up` writes one")
    for line in _last(file, lines):
        desk.out.item({"line": line}, safe_lines(line))
    if follow:
        asyncio.run(_follow(desk, file, desk.clock))


async def _follow(desk: Desk, file: Path, clock: Clock) -> None:
    reader = _Reader(file)
    while True:
        await clock.sleep_until(clock.now() + LOOK_EVERY_MS)
        for line in reader.fresh():
            desk.out.item({"line": line}, safe_lines(line))


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
