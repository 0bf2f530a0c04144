"""`doctor`: what a home stands on, looked at."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.local_models import DEMO
from wakeful.cli.output import GREEN, RED, YELLOW
from wakeful.models.windows import stated_window
from wakeful.operations.doctor import Finding, Installation, Verdict, examine
from wakeful.settings.file import ServerSettings
from wakeful.settings.load import Loaded, load
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import Purpose
from wakeful.turn.agent import model_name

COLOURS = {
    Verdict.OK: GREEN,
    Verdict.FIXED: GREEN,
    Verdict.WARNING: YELLOW,
    Verdict.BROKEN: RED,
}

DEFAULT_SERVER = ServerSettings()

Fix = Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss.")]


def doctor(desk: CliContext, fix: Fix = False) -> None:
    """Look at everything the runtime stands on, and say what to do about it."""
    server = desk.server()
    is_ready = server is not None and server.is_ready()
    loaded, about_settings = _settings(desk)
    findings = [about_settings]
    installation = Installation(
        home=desk.home,
        address="sqlite" if loaded is None else loaded.settings.database,
        database=desk.database,
        host=DEFAULT_SERVER.host if loaded is None else loaded.server.host,
        port=DEFAULT_SERVER.port if loaded is None else loaded.server.port,
        is_running=is_ready,
        commands={} if loaded is None else _programs(desk, loaded),
        windows={} if loaded is None else _windows(loaded),
    )
    findings += examine(installation, desk.clock, fix=fix)
    if server is not None:
        findings.append(_answers(is_ready=is_ready))
    lines = [
        f"{desk.out.styled(found.health.value.ljust(8), COLOURS[found.health])} "
        f"{found.subject.ljust(9)} {found.told}"
        for found in findings
    ]
    desk.out.data(findings, lines)
    broken = [found.subject for found in findings if found.health is Verdict.BROKEN]
    if broken:
        raise CommandFailed(f"something is wrong with: {', '.join(broken)}")


def _programs(desk: CliContext, loaded: Loaded) -> dict[str, str]:
    """Return what each MCP server starts: a name to look for, or a path from where it runs."""
    servers = loaded.mcp_servers
    return {
        name: str(desk.home / Path(one.folder or f"mcp/{name}").expanduser() / one.words[0])
        if "/" in one.words[0]
        else one.words[0]
        for name, one in servers.items()
        if one.command
    }


def _windows(loaded: Loaded) -> dict[str, int | None]:
    """Return how many tokens each agent's models read at once, as far as anybody knows."""
    used = (one for agent in loaded.agents for one in (agent.model, *agent.fallback_models))
    names = dict.fromkeys(name for one in used if (name := model_name(one)) != DEMO)
    return {name: stated_window(name, loaded.settings.models) for name in names}


def _settings(desk: CliContext) -> tuple[Loaded | None, Finding]:
    """Return the settings as far as they can be read, and what is to be said about them."""
    try:
        loaded = load(None, desk.environ, Purpose.CHECK)
    except BadSettings as bad:
        return None, _about_settings(Verdict.BROKEN, str(bad.problems[0]))
    sentence = str(loaded.file) if loaded.file else "no file: every key has its default"
    running = desk.running
    if running is not None:
        refused = running.reload.problems if running.reload else ()
        if refused:
            why = f"the server keeps its earlier settings, since it refused the file: {refused[0]}"
            return loaded, _about_settings(Verdict.BROKEN, why)
        return loaded, _about_settings(Verdict.OK, sentence)
    try:
        load(None, desk.environ)
    except BadSettings as bad:
        # Not broken: whoever starts the server may have what is missing here.
        why = f"`wakeful up` would not start from this shell: {bad.problems[0]}"
        return loaded, _about_settings(Verdict.WARNING, why)
    return loaded, _about_settings(Verdict.OK, sentence)


def _about_settings(health: Verdict, sentence: str) -> Finding:
    return Finding(subject="settings", health=health, told=sentence)


def _answers(*, is_ready: bool) -> Finding:
    if is_ready:
        return Finding(subject="answers", health=Verdict.OK, told="the server can commit a row")
    return Finding(
        subject="answers",
        health=Verdict.BROKEN,
        told="the server's process lives but does not answer; look at `wakeful logs`",
    )
