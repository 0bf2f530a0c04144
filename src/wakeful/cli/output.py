"""What a command prints: data as JSON or as lines, errors as one sentence, progress as it goes."""

import os
import select
import stat
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import msgspec

from wakeful.cli.exits import ExitCode
from wakeful.vocabulary.text import escaped_json, one_line, unsteering

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
WIDEST_CELL = 72
WIDTH = 80  # columns that a line has

# Not printable, but part of how words and pictures are spelt: joiners, and marks of direction.
_KEPT = frozenset("\n\t\u200c\u200d\u200e\u200f")


class CommandOutput:
    """Standard output and standard error of one command."""

    def __init__(
        self,
        *,
        is_json: bool,
        environ: Mapping[str, str],
        out: TextIO | None = None,
        error: TextIO | None = None,
    ) -> None:
        self.is_json = is_json
        self._out = out or sys.stdout
        self._error = error or sys.stderr
        self.is_terminal = self._out.isatty()
        self.has_colours = (
            not environ.get("NO_COLOR")
            and environ.get("TERM") != "dumb"
            and self.is_terminal
            and not is_json
        )
        self._shows_progress = self._error.isatty() and not is_json

    def data(self, value: Any, lines: Iterable[str]) -> None:
        """Print data: as one JSON document if asked for, else as lines."""
        if self.is_json:
            document = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
            self.line(escaped_json(document))
            return
        for line in lines:
            self.line(line)

    def item(self, value: Any, line: str) -> None:
        """Print one item of a stream: as one line of JSON if asked for, else as a line."""
        self.line(escaped_json(msgspec.json.encode(value).decode()) if self.is_json else line)

    def line(self, text: str = "") -> None:
        self._write(text + "\n")

    def words(self, text: str) -> None:
        """Print part of a line, at once."""
        self._write(text)

    def note(self, text: str) -> None:
        """Tell something that is no data."""
        if not self.is_json:
            self.complain(text)

    def complain(self, text: str) -> None:
        print(text, file=self._error, flush=True)

    def progress(self, done: int, total: int) -> None:
        """Show how far long work has come; only on a terminal."""
        if self._shows_progress and total:
            ending = "\n" if done >= total else ""
            print(f"\r{done * 100 // total:3d} %", end=ending, file=self._error, flush=True)

    def working(self, text: str) -> None:
        """Say what long work is under way that cannot tell how far it is; only on a terminal."""
        if self._shows_progress:
            print(f"{text}…", file=self._error, flush=True)

    def styled(self, text: str, *codes: str) -> str:
        """Return text in a style, if the terminal wants any."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.has_colours else text

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
        """Return rows as lines with aligned columns."""
        if not rows:
            return []
        cells = [[safe(str(cell), WIDEST_CELL) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        lines = [_aligned(row, widths) for row in cells]
        return [self.styled(_aligned(head, widths), BOLD), *lines]

    def paragraph(self, head: str, words: str) -> list[str]:
        """Return a heading and, below it, one line of words that 80 columns hold."""
        return [self.styled(safe(head), BOLD), f"  {safe(words, WIDTH - 2)}"]

    def _write(self, text: str) -> None:
        print(text, end="", file=self._out, flush=True)


def safe(text: str, limit: int = 10_000) -> str:
    """Return text as one line without anything a terminal would obey."""
    return unsteering(one_line(text, limit))


def safe_lines(text: str) -> str:
    """Return text with its line breaks, but without anything a terminal would obey."""
    return "".join(char for char in text if char in _KEPT or char.isprintable())


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with the word for what it counts."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def quiet_stdout() -> None:
    """Send what is still to be printed nowhere: whoever read it has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave_with_the_reader() -> None:
    """End when nobody reads a pipe any more: who only waits would never notice by writing."""
    fd = sys.stdout.fileno()
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        threading.Thread(target=_watch, args=(fd,), daemon=True).start()


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _watch(fd: int) -> None:
    reader = select.poll()
    reader.register(fd, 0)  # errors and ends are told in any case
    reader.poll()
    os._exit(ExitCode.FAILURE)  # the main thread waits for the server and hears nothing else
