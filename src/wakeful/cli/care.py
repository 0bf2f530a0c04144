"""`doctor`, `backup`, `db`: what keeps a home healthy."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from wakeful.assembly.plan import DATABASE_NAME
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.local_models import DEMO
from wakeful.cli.output import GREEN, RED, YELLOW
from wakeful.cli.times import size
from wakeful.cli.verb import verb
from wakeful.models.windows import stated_window
from wakeful.operations import backup
from wakeful.operations.doctor import Finding, Installation, Verdict, examine
from wakeful.settings.load import load
from wakeful.settings.problems import BadSettings
from wakeful.store.migrations import packaged
from wakeful.store.opening import is_postgres, open_store
from wakeful.store.sqlite_check import check
from wakeful.turn.agent import model_name
from wakeful.vocabulary.errors import StoreRefused

backups = typer.Typer(help="Copies of the database.", no_args_is_help=True)
databases = typer.Typer(help="The database itself.", no_args_is_help=True)

COLOURS = {
    Verdict.OK: GREEN,
    Verdict.FIXED: GREEN,
    Verdict.WARNING: YELLOW,
    Verdict.BROKEN: RED,
}

File = Annotated[Path, typer.Argument(help="The file of the backup.")]
Force = Annotated[bool, typer.Option("--force", help="Move the present database aside.")]
Fix = Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss.")]


def doctor(desk: CliContext, fix: Fix = False) -> None:
    """Look at everything the runtime stands on, and say what to do about it."""
    findings = [_settings(desk)]
    if findings[0].health is Verdict.OK:
        server = desk.server()
        patient = Installation(
            home=desk.home,
            address=desk.loaded.settings.database,
            database=desk.database,
            host=desk.loaded.server.host,
            port=desk.loaded.server.port,
            is_running=server is not None and server.is_ready(),
            commands=_programs(desk),
            windows=_windows(desk),
        )
        findings += examine(patient, desk.clock, fix=fix)
        if server is not None:
            findings.append(_answers(is_ready=patient.is_running))
    lines = [
        f"{desk.out.styled(found.health.value.ljust(8), COLOURS[found.health])} "
        f"{found.subject.ljust(9)} {found.told}"
        for found in findings
    ]
    desk.out.data(findings, lines)
    broken = [found.subject for found in findings if found.health is Verdict.BROKEN]
    if broken:
        raise CommandFailed(f"something is wrong with: {', '.join(broken)}")


@verb(backups, "create")
def create(
    desk: CliContext, file: Annotated[Path | None, typer.Argument(help="A new file.")] = None
) -> None:
    """Copy the database to a new file, also while the server runs, and check the copy."""
    target = file or backup.default_file(desk.home, desk.clock)
    made = backup.create(
        desk.loaded.settings.database, desk.database, target.absolute(), desk.out.progress
    )
    desk.out.data(made, [f"{made.file} ({size(made.size_bytes)}) is whole"])


@verb(backups, "verify")
def verify(desk: CliContext, file: File) -> None:
    """Check that a backup is whole and can be put back by this release."""
    found = backup.verify(file)
    desk.out.data(
        found, [f"{file} ({size(found.size_bytes)}, schema {found.schema_version}) is whole"]
    )


@verb(backups, "restore")
def restore(desk: CliContext, file: File, force: Force = False) -> None:
    """Put a backup in place of the database; the server must be stopped."""
    done = backup.restore(
        desk.loaded.settings.database,
        file,
        desk.database,
        desk.clock,
        desk.out.progress,
        force=force,
    )
    lines = [f"{done.database} is restored from {file}"]
    if done.moved:
        lines.append(f"what was there before is now {done.moved[0]}")
    desk.out.data(done, lines)


@verb(databases, "migrate")
def migrate(desk: CliContext) -> None:
    """Bring the database up to this release; a start does the same."""
    address = desk.loaded.settings.database
    where = address if is_postgres(address) else desk.home / DATABASE_NAME

    async def opened() -> int:
        store = await open_store(where, clock=desk.clock)
        try:
            return (await store.read("SELECT version FROM schema"))[0][0]
        finally:
            await store.close()

    desk.out.working(f"bringing the database to schema {packaged()[-1].number}")
    version = asyncio.run(opened())
    desk.out.data({"schema_version": version}, [f"the database has schema {version}"])


@verb(databases, "check")
def check_(desk: CliContext) -> None:
    """Check the whole database; nothing is changed, and the server may be running."""
    if is_postgres(desk.loaded.settings.database):
        raise StoreRefused("the database is PostgreSQL: use pg_amcheck")
    if not desk.database.exists():
        raise StoreRefused(f"there is no database in {desk.home}; `wakeful up` creates one")
    desk.out.working(f"checking {desk.database} ({size(desk.database.stat().st_size)})")
    complaints = check(desk.database)
    desk.out.data(
        {"database": str(desk.database), "complaints": complaints},
        complaints or [f"{desk.database} is whole"],
    )
    if complaints:
        raise CommandFailed(
            f"{desk.database} is damaged; stop the server and restore a backup with "
            "`wakeful backup restore FILE --force`"
        )


def _programs(desk: CliContext) -> dict[str, str]:
    """Return what each MCP server starts: a name to look for, or a path from where it runs."""
    servers = desk.loaded.settings.mcp_servers
    return {
        name: str(desk.home / Path(one.folder or "").expanduser() / one.command[0])
        if "/" in one.command[0]
        else one.command[0]
        for name, one in servers.items()
        if one.command
    }


def _windows(desk: CliContext) -> dict[str, int | None]:
    """Return how many tokens each agent's models read at once, as far as anybody knows."""
    used = (one for agent in desk.loaded.agents for one in (agent.model, *agent.fallback_models))
    names = dict.fromkeys(name for one in used if (name := model_name(one)) != DEMO)
    return {name: stated_window(name, desk.loaded.settings.models) for name in names}


def _settings(desk: CliContext) -> Finding:
    try:
        loaded = load(None, desk.environ)
    except BadSettings as bad:
        return Finding(subject="settings", health=Verdict.BROKEN, told=str(bad.problems[0]))
    told = str(loaded.file) if loaded.file else "no file: every key has its default"
    return Finding(subject="settings", health=Verdict.OK, told=told)


def _answers(*, is_ready: bool) -> Finding:
    if is_ready:
        return Finding(subject="answers", health=Verdict.OK, told="the server can commit a row")
    return Finding(
        subject="answers",
        health=Verdict.BROKEN,
        told="the server's process lives but does not answer; look at `wakeful logs`",
    )
