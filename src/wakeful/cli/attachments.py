"""`sessions attachments`, `sessions take`: the files of a conversation, and files to send."""

import base64
from collections.abc import Sequence
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.look import SessionName
from wakeful.cli.output import counted, safe
from wakeful.cli.transfer import STREAM, target_of

LARGEST_PAGE = 500  # of what one answer lists
UNKNOWN = "application/octet-stream"

Files = Annotated[
    list[Path] | None,
    typer.Option("--file", "-f", metavar="FILE", help="A file that goes along; may be repeated."),
]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many of the newest.")]
Id = Annotated[str, typer.Argument(help="The id that `sessions attachments` shows.")]
Target = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
]


def attachments(context: CliContext, session: SessionName, limit: Limit = 50) -> None:
    """List what is attached to a conversation, the newest first."""
    path = f"/api/sessions/{segment(session)}/attachments"
    reader = context.reader()
    found: dict[str, Any] = reader.get(path, limit=min(limit, LARGEST_PAGE))
    items: list[dict[str, Any]] = found["items"]
    while found["next"] is not None and len(items) < limit:
        left = min(limit - len(items), LARGEST_PAGE)
        found = reader.get(path, limit=left, after=found["next"])
        items += found["items"]
    found = {**found, "items": items}
    lines = [_line(one) for one in items]
    context.out.data(found, lines or ["nothing is attached"])
    if found["next"] is not None:
        context.out.note("there are more: ask for them with a larger --limit")


def take(context: CliContext, session: SessionName, id: Id, output: Target = STREAM) -> None:
    """Write something that is attached to a conversation to a file."""
    path = f"/api/sessions/{segment(session)}/attachments/{segment(id)}"
    size = 0
    with target_of(output) as target, context.needed_server().lines(path) as parts:
        for part in parts:
            target.write(part)
            size += len(part)
    if output != STREAM:
        context.out.data({"file": output, "bytes": size}, [f"{output} has {counted(size, 'byte')}"])


def _line(one: dict[str, Any]) -> str:
    kind = safe(one["media_type"], 80)
    return f"{one['id']}  {safe(one['name'], 80)}  ({kind}, {counted(one['size'], 'byte')})"


def read_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return files as a message brings them along."""
    try:
        return [
            {
                "name": path.name,
                "media_type": guess_type(path.name)[0] or UNKNOWN,
                "data": base64.b64encode(path.read_bytes()).decode(),
            }
            for path in paths
        ]
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}") from error
