"""`backup`: copies of the database."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.times import size
from wakeful.operations import backup

File = Annotated[Path, typer.Argument(help="The file of the backup.")]
Force = Annotated[bool, typer.Option("--force", help="Move the present database aside.")]


def create(
    context: CliContext, file: Annotated[Path | None, typer.Argument(help="A new file.")] = None
) -> None:
    """Copy the database to a new file, also while the server runs, and check the copy."""
    target = file or backup.default_file(context.home, context.clock)
    made = backup.create(
        context.loaded.settings.database, context.database, target.absolute(), context.out.progress
    )
    context.out.data(made, [f"{made.file} ({size(made.size_bytes)}) is whole"])


def verify(context: CliContext, file: File) -> None:
    """Check that a backup is whole and can be put back by this release."""
    found = backup.verify(file)
    context.out.data(
        found, [f"{file} ({size(found.size_bytes)}, schema {found.schema_version}) is whole"]
    )


def restore(context: CliContext, file: File, force: Force = False) -> None:
    """Put a backup in place of the database; the server must be stopped."""
    done = backup.restore(
        context.loaded.settings.database,
        file,
        context.database,
        context.clock,
        context.out.progress,
        force=force,
    )
    lines = [f"{done.database} is restored from {file}"]
    if done.moved:
        lines.append(f"what was there before is now {done.moved[0]}")
    context.out.data(done, lines)
