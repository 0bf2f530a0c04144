"""`sessions export`, `sessions import`: transcripts as files."""

import codecs
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from wakeful.cli.client import ServerClient
from wakeful.cli.context import CliContext
from wakeful.cli.look import SessionName
from wakeful.cli.output import counted, safe
from wakeful.cli.session_names import session_named, session_path
from wakeful.vocabulary.text import escaped_json

STREAM = "-"
PIECE = 64 * 1024

Transcript = Annotated[
    str | None, typer.Option("--transcript", metavar="ID", help="One from before a reset.")
]
Target = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
]
File = Annotated[str, typer.Argument(help="The file; - is standard input.")]
NewSession = Annotated[
    str | None, typer.Option("--session", metavar="KEY", help="The session to make.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would become of it.")]


def export(
    context: CliContext,
    session: SessionName,
    transcript: Transcript = None,
    output: Target = STREAM,
) -> None:
    """Write a session's transcript as a file of JSON lines, also while no server runs."""
    total: int = context.reader().get(session_path(session))["entries"] + 1
    lines = size = 0
    with target_of(output) as target, _parts(context, session, transcript) as parts:
        for part in parts:
            target.write(part)
            lines, size = lines + part.count(b"\n"), size + len(part)
            context.out.progress(min(lines, total - 1), total)
    context.out.progress(total, total)
    if output != STREAM:
        written = {"file": output, "lines": lines, "bytes": size}
        context.out.data(written, [f"{output} has {counted(lines, 'line')}"])


def import_(
    context: CliContext, file: File, session: NewSession = None, dry_run: DryRun = False
) -> None:
    """Make a session of a transcript's file; the server must be running."""
    server = context.needed_server()
    with _source(file) as source:
        pieces = _pieces(source, context.out.progress)
        report: dict[str, Any] = server.send_lines(
            "/api/sessions/import",
            pieces,
            session=None if session is None else session_named(session),
            dry_run="true" if dry_run else None,
        )
    verb = "would become" if dry_run else "became"
    lines = [
        f"line {one['line']}: {safe(one['what'], 200)}: {one['done']}" for one in report["told"]
    ]
    if report["troubles"] > len(lines):
        more = counted(report["troubles"] - len(lines), "more line", "more lines")
        lines.append(f"… and {more} like these")
    for name, what in (("unknown", "line"), ("unread_blocks", "block")):
        if found := report.get(name, 0):
            written = f"{counted(found, what)} of unknown kinds"
            lines.append(f"kept as they are, and read by nobody: {written}")
    entries = counted(report["entries"], "entry", "entries")
    branches = counted(report["branches"], "branch", "branches")
    context.out.data(report, [*lines, f"{entries} on {branches} {verb} {report['session_key']}"])


def _parts(
    context: CliContext, session: str, transcript: str | None
) -> AbstractContextManager[Iterator[bytes]]:
    reader = context.reader()
    if isinstance(reader, ServerClient):
        return reader.lines(f"{session_path(session)}/export", transcript=transcript)
    return reader.exported(session_named(session), transcript)


class Screen:
    """A terminal that lines of JSON are written to, in a form that it shows and never obeys."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, part: bytes) -> int:
        self._out.write(escaped_json(self._decoder.decode(part)).encode())
        return len(part)


@contextmanager
def target_of(output: str) -> Generator[BinaryIO, None, None]:
    """Open where the lines go; a file gets its name when it is whole."""
    if output == STREAM:
        lines = sys.stdout.buffer
        yield cast("Any", Screen(lines)) if sys.stdout.isatty() else lines
        lines.flush()
        return
    path = Path(output)
    draft = path.with_name(f"{path.name}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def _source(file: str) -> Generator[BinaryIO, None, None]:
    if file == STREAM:
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as source:
        yield source


def _pieces(source: BinaryIO, progress: Callable[[int, int], None]) -> Iterator[bytes]:
    """Yield a file in pieces; how far it has come is known of real files only."""
    total = os.fstat(source.fileno()).st_size
    done = 0
    while piece := source.read(PIECE):
        yield piece
        done += len(piece)
        progress(min(done, total), total)
