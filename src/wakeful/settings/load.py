"""Loading: one file and the environment become settings, agents and a server, or problems."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from wakeful.settings import text
from wakeful.settings.build import (
    ANYBODY,
    AgentBuilder,
    build_hooks,
    build_mcp_servers,
    build_outbound,
    build_providers,
    build_settings,
    check_server,
    is_host,
)
from wakeful.settings.file import ServerSettings, SettingsFile, TelemetrySettings
from wakeful.settings.hooks import HookSettings
from wakeful.settings.keys import out_of_bounds
from wakeful.settings.own_tools import NO_TOOLS, OwnTools, load_tools
from wakeful.settings.places import file_of, home_of
from wakeful.settings.problems import BadSettings, SettingsProblem
from wakeful.settings.purpose import SettingsPurpose
from wakeful.settings.reading import Reading
from wakeful.settings.settings import OutboundSettings, Settings
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.turn.agent import Agent
from wakeful.vocabulary.record import Record

_KIND = cast("msgspec.inspect.StructType", msgspec.inspect.type_info(SettingsFile))


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Everything that was chosen, checked and ready for a runtime."""

    home: Path
    file: Path | None  # None: there is none, and every key has its default
    written: SettingsFile
    settings: Settings
    agents: tuple[Agent, ...]
    server: ServerSettings
    outbound: Mapping[str, OutboundSettings]
    hooks: Mapping[str, HookSettings]
    mcp_servers: Mapping[str, McpServerSettings]
    telemetry: TelemetrySettings
    token: str | None  # the operator's, from the environment
    own_tools: OwnTools = NO_TOOLS


class Reloaded(Record):
    """What a second look found: the keys that changed, or why the old settings stay."""

    changed: tuple[str, ...] = ()
    problems: tuple[SettingsProblem, ...] = ()


def load(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    purpose: SettingsPurpose = SettingsPurpose.SERVE,
) -> Loaded:
    """Load `path`, or the file the environment names, or the one at home if there is one.

    Raise BadSettings with every problem that was found; nothing is created or changed.
    """
    environ = os.environ if environ is None else environ
    is_named = path is not None or bool(environ.get("WAKEFUL_CONFIG"))
    file = path or file_of(environ)
    content = _content(file, is_named=is_named)
    return load_text(content, file, environ, purpose)


def load_text(
    content: str | None,
    file: Path,
    environ: Mapping[str, str],
    purpose: SettingsPurpose = SettingsPurpose.SERVE,
) -> Loaded:
    """Load the text of a settings file, None if there is no file."""
    place, home = str(file), home_of(environ)
    reading = Reading(place, environ, needs_secrets=purpose.needs_secrets)
    tree = reading.read(text.parsed(content or "", place), _KIND)
    if reading.problems:
        raise BadSettings(sorted(reading.problems, key=_line))
    written = msgspec.convert(tree, SettingsFile)
    problems = reading.problems
    server = _server(written.server, environ, problems)
    check_server(written.server, reading)
    settings = build_settings(written, home, file.parent, environ, reading)
    own = NO_TOOLS
    if purpose.loads_tools:
        own = load_tools(written.tools_from, file.parent, reading)
    outbound, servers, providers = written.outbound, written.mcp_servers, written.providers
    hooks = build_hooks(written, file.parent, reading, needs_secrets=purpose.needs_secrets)
    if purpose.needs_secrets:
        outbound = build_outbound(written, file.parent, reading)
        servers = build_mcp_servers(written, file.parent, reading)
        providers = build_providers(written, file.parent, reading)
    builder = AgentBuilder(
        home=home,
        folder=file.parent,
        purpose=purpose,
        own=own,
        # One that could not be built was complained about: its models are not unknown as well.
        providers={**dict.fromkeys(written.providers, ANYBODY), **providers},
        reading=reading,
    )
    agents = builder.build(written)
    if problems or settings is None:
        raise BadSettings(sorted(problems, key=_line))
    return Loaded(
        home=home,
        file=None if content is None else file,
        written=written,
        settings=msgspec.structs.replace(
            settings,
            outbound=dict(outbound),
            hooks=hooks,
            mcp_servers=dict(servers),
            providers=dict(providers),
        )
        if purpose.needs_secrets
        else settings,
        agents=agents,
        server=server,
        outbound=outbound,
        hooks=hooks,
        mcp_servers=servers,
        telemetry=written.telemetry,
        token=environ.get("WAKEFUL_TOKEN") or None,
        own_tools=own,
    )


def reload(old: Loaded, environ: Mapping[str, str]) -> tuple[Loaded, Reloaded]:
    """Look at the file again: what it says now if all of it is good, else `old` and why."""
    try:
        new = load(old.file, environ)
    except BadSettings as bad:
        return old, Reloaded(problems=bad.problems)
    changed = [
        name
        for name in SettingsFile.__struct_fields__
        if getattr(old.written, name) != getattr(new.written, name)
    ]
    # The environment or a secret's file may say otherwise now.
    for name in ("server", "outbound", "hooks", "mcp_servers"):
        if getattr(old, name) != getattr(new, name) and name not in changed:
            changed.append(name)
    if old.own_tools.sources != new.own_tools.sources and "tools_from" not in changed:
        changed.append("tools_from")
    if old.settings.providers != new.settings.providers and "providers" not in changed:
        changed.append("providers")
    return new, Reloaded(changed=tuple(changed))


def _content(file: Path, *, is_named: bool) -> str | None:
    place = str(file)
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        if not is_named:
            return None
        rule = "there is no such file; `wakeful init` writes one"
        raise BadSettings([SettingsProblem(place=place, rule=rule)]) from None
    except OSError as error:
        rule = f"cannot be read: {error.strerror}"
        raise BadSettings([SettingsProblem(place=place, rule=rule)]) from None
    if len(raw) > text.LARGEST_FILE:
        rule = f"is larger than {text.LARGEST_FILE} bytes"
        raise BadSettings([SettingsProblem(place=place, rule=rule)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadSettings([SettingsProblem(place=place, line=line, rule="is not UTF-8")]) from None


def _line(problem: SettingsProblem) -> int:
    return problem.line or 0


def _server(
    server: ServerSettings, environ: Mapping[str, str], problems: list[SettingsProblem]
) -> ServerSettings:
    host = environ.get("WAKEFUL_HOST") or server.host
    if host != server.host and not is_host(host):
        rule = "must be an address or a host name"
        problems.append(SettingsProblem(place="WAKEFUL_HOST", rule=rule))
    port = server.port
    said = environ.get("WAKEFUL_PORT")
    if said:
        is_number = said.isascii() and said.isdecimal() and len(said) <= 5
        rule = out_of_bounds("server.port", int(said)) if is_number else "must be a whole number"
        if rule is None:
            port = int(said)
        else:
            problems.append(SettingsProblem(place="WAKEFUL_PORT", rule=rule))
    return msgspec.structs.replace(server, host=host, port=port)
