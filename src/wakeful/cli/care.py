"""`doctor`: what a home stands on, looked at."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli import agent_lines
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.local_models import DEMO
from wakeful.cli.output import GREEN, RED, YELLOW, safe
from wakeful.models.windows import stated_window
from wakeful.operations.doctor import Condition, Finding, Installation, examine
from wakeful.settings.exposure import is_loopback
from wakeful.settings.file import ServerSettings
from wakeful.settings.hooks import HookSettings
from wakeful.settings.load import Loaded, load
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import SettingsPurpose
from wakeful.store.opening import is_postgres
from wakeful.turn.agent import model_name
from wakeful.vocabulary.errors import WakefulError

COLOURS = {
    Condition.OK: GREEN,
    Condition.FIXED: GREEN,
    Condition.WARNING: YELLOW,
    Condition.BROKEN: RED,
}

DEFAULT_SERVER = ServerSettings()

Fix = Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss.")]


def doctor(context: CliContext, fix: Fix = False) -> None:
    """Look at everything the runtime stands on, and say what to do about it."""
    server = context.server()
    is_ready = server is not None and server.is_ready()
    loaded, about_settings = _settings(context)
    findings = [about_settings]
    installation = Installation(
        home=context.home,
        address="sqlite" if loaded is None else loaded.settings.database,
        database=context.database,
        host=DEFAULT_SERVER.host if loaded is None else loaded.server.host,
        port=DEFAULT_SERVER.port if loaded is None else loaded.server.port,
        is_running=is_ready,
        commands={} if loaded is None else _programs(context, loaded),
        windows={} if loaded is None else _windows(loaded),
        hooks=() if loaded is None else tuple(loaded.hooks),
        is_public=loaded is not None and _is_public(loaded.server),
    )
    findings += examine(installation, context.clock, fix=fix)
    if server is not None:
        findings.append(_answers(is_ready=is_ready))
    if is_ready or (loaded is not None and _has_database(context, loaded)):
        findings += _about_agents(context, loaded)
    lines = [
        f"{context.out.styled(found.health.value.ljust(8), COLOURS[found.health])} "
        f"{found.subject.ljust(9)} {found.told}"
        for found in findings
    ]
    context.out.data(findings, lines)
    broken = [found.subject for found in findings if found.health is Condition.BROKEN]
    if broken:
        raise CommandFailed(f"something is wrong with: {', '.join(broken)}")


def _is_public(server: ServerSettings) -> bool:
    """Tell whether others can reach the server: by its address, or by a name that a proxy has."""
    return not is_loopback(server.host) or bool(server.hosts)


def _has_database(context: CliContext, loaded: Loaded) -> bool:
    """Tell whether the agents can be looked at though no server answers."""
    is_file = not is_postgres(loaded.settings.database)
    return context.server() is None and is_file and context.database.exists()


def _about_agents(context: CliContext, loaded: Loaded | None) -> Iterator[Finding]:
    """Tell who wakes when, who sleeps, what was skipped, and what is left to spend, and why."""
    try:
        agents: list[agent_lines.Shown] = context.reader().get("/api/agents")["items"]
    except WakefulError:
        return  # what keeps them from being looked at has been found already
    known = () if loaded is None else loaded.agents
    rules = {agent.id: tuple(agent.config.approvals) for agent in known}
    for agent in agents:
        yield _about_waking(context, agent)
        for subject, lines in (
            ("approvals", agent_lines.approval_lines(agent)),
            ("quiet", agent_lines.quiet_lines(context, agent)),
            ("sleep", agent_lines.sleep_lines(context, agent)),
            ("heartbeat", agent_lines.beat_lines(context, agent)),
            ("skipped", agent_lines.skip_lines(context, agent)),
            ("held", agent_lines.held_lines(context, agent)),
        ):
            for line in lines:
                yield Finding(subject=subject, health=Condition.OK, told=line)
        yield from _about_permissions(agent, rules.get(agent["id"], ()))
        if loaded is not None:
            yield from _about_grants(agent, loaded.hooks)
        budget = agent["budget"]
        health = Condition.WARNING if agent_lines.is_short(budget) else Condition.OK
        line = agent_lines.budget_line(context, budget)
        yield Finding(subject="budget", health=health, told=line)


def _about_permissions(agent: agent_lines.Shown, named: Sequence[str]) -> Iterator[Finding]:
    """Tell of rules for tools that an agent does not have: they may come, or be misspelt."""
    if sentence := _unknown_tools(f"agents.{safe(agent['id'])}.approvals", agent, named):
        yield Finding(subject="approvals", health=Condition.WARNING, told=sentence)


def _about_grants(agent: agent_lines.Shown, hooks: Mapping[str, HookSettings]) -> Iterator[Finding]:
    """Tell of hooks that are granted tools which their agent does not have."""
    for name, hook in hooks.items():
        if hook.agent != agent["id"]:
            continue
        if sentence := _unknown_tools(f"hooks.{safe(name)}.tools", agent, hook.tools):
            yield Finding(subject="hooks", health=Condition.WARNING, told=sentence)


def _unknown_tools(key: str, agent: agent_lines.Shown, named: Sequence[str]) -> str | None:
    missing = [name for name in named if name not in agent["tools"]]
    if not missing:
        return None
    names = ", ".join(safe(name, 80) for name in missing)
    return (
        f"{key} names {names}, which no tool of {safe(agent['id'])} is called now; "
        "mend the name, unless an MCP server brings it"
    )


def _about_waking(context: CliContext, agent: agent_lines.Shown) -> Finding:
    who, due = safe(agent["id"]), agent["next_wake_at"]
    if agent["is_halted"]:
        sentence = f"{who} is halted: nothing wakes it until `wakeful resume`"
        return Finding(subject="wakes", health=Condition.WARNING, told=sentence)
    sentence = f"{who} wakes next {context.how_long(due)}" if due else f"nothing is due for {who}"
    return Finding(subject="wakes", health=Condition.OK, told=sentence)


def _programs(context: CliContext, loaded: Loaded) -> dict[str, str]:
    """Return what each MCP server starts: a name to look for, or a path from where it runs."""
    servers = loaded.mcp_servers
    return {
        name: str(context.home / Path(one.folder or f"mcp/{name}").expanduser() / one.words[0])
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


def _settings(context: CliContext) -> tuple[Loaded | None, Finding]:
    """Return the settings as far as they can be read, and what is to be said about them."""
    try:
        loaded = load(None, context.environ, SettingsPurpose.CHECK)
    except BadSettings as bad:
        return None, _about_settings(Condition.BROKEN, str(bad.problems[0]))
    sentence = str(loaded.file) if loaded.file else "no file: every key has its default"
    running = context.running
    if running is not None:
        refused = running.reload.problems if running.reload else ()
        if refused:
            why = f"the server keeps its earlier settings, since it refused the file: {refused[0]}"
            return loaded, _about_settings(Condition.BROKEN, why)
        return loaded, _about_settings(Condition.OK, sentence)
    try:
        load(None, context.environ)
    except BadSettings as bad:
        # Not broken: whoever starts the server may have what is missing here.
        why = f"`wakeful up` would not start from this shell: {bad.problems[0]}"
        return loaded, _about_settings(Condition.WARNING, why)
    return loaded, _about_settings(Condition.OK, sentence)


def _about_settings(health: Condition, sentence: str) -> Finding:
    return Finding(subject="settings", health=health, told=sentence)


def _answers(*, is_ready: bool) -> Finding:
    if is_ready:
        return Finding(subject="answers", health=Condition.OK, told="the server can commit a row")
    return Finding(
        subject="answers",
        health=Condition.BROKEN,
        told="the server's process lives but does not answer; look at `wakeful logs`",
    )
