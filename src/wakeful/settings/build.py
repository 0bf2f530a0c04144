"""What a settings file means: agents, bindings, secrets, addresses; each fault with its key."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import expanduser
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from wakeful.doors.http.forwarding import trusted_network
from wakeful.intake.bindings import Bindings
from wakeful.models.catalog import find
from wakeful.models.choosing import refuse_bad_provider, refuse_unknown
from wakeful.models.providers import Providers, ProviderSettings, WireFormat
from wakeful.settings.file import AgentSettings, ServerSettings, SettingsFile
from wakeful.settings.hooks import NO_SECRET, HookSettings, hook_of
from wakeful.settings.own_tools import Complaints, OwnTools
from wakeful.settings.purpose import SettingsPurpose
from wakeful.settings.settings import OutboundSettings, Settings, refuse_bad_outbound
from wakeful.store.opening import is_postgres
from wakeful.tools.builtin import default_tools, optional_tools
from wakeful.tools.mcp.options import McpServerSettings, refuse_bad_server
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.session_key import checked_agent_id
from wakeful.workspace import refuse_around

MAIN = "main"  # always there
LARGEST_SECRET = 64 * 1024
READ_APART = ("database", "timezone", "outbound", "hooks", "mcp_servers", "providers")
ANYBODY = ProviderSettings(kind=WireFormat.OPENAI_CHAT, base_url="http://127.0.0.1", key="k")

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252})?|\[[0-9A-Fa-f:.]+\]")


def build_settings(
    written: SettingsFile,
    home: Path,
    folder: Path,
    environ: Mapping[str, str],
    reading: Complaints,
) -> Settings | None:
    """Return the runtime's settings, or None after having complained."""
    _check_zone(written.timezone, reading)
    _check_bindings(written, reading)
    _check_inbox(written, reading)
    in_file = _or_from_file(
        "database", written.database, written.database_file, "sqlite", folder, reading
    )
    database = environ.get("WAKEFUL_DATABASE") or in_file or written.database
    if is_postgres(database) and find_spec("asyncpg") is None:
        reading.complain("database", "PostgreSQL needs the extra: install wakeful[postgres]")
    try:
        return Settings(
            home=home,
            database=database,
            timezone=written.timezone or "",
            **{
                name: getattr(written, name)
                for name in SettingsFile.__struct_fields__
                if name in Settings.__struct_fields__ and name not in READ_APART
            },
        )
    except InvalidInput as error:
        reading.complain(error.field, error.rule)
        return None


@dataclass(frozen=True, kw_only=True)
class AgentBuilder:
    """Makes agents of what is written about them."""

    home: Path
    folder: Path  # of the settings file
    purpose: SettingsPurpose
    own: OwnTools
    providers: Providers
    reading: Complaints

    def build(self, written: SettingsFile) -> tuple[Agent, ...]:
        """Return the agents, `main` first, whether or not the file names it."""
        wanted = {MAIN: AgentSettings(), **written.agents}
        for name, given in written.agents.items():
            for position, server in enumerate(given.mcp):
                if server not in written.mcp_servers:
                    known = ", ".join(written.mcp_servers) or "none"
                    rule = f"must be one of the mcp_servers ({known}), not {server[:60]!r}"
                    self.reading.complain(f"agents.{name}.mcp[{position}]", rule)
        self._check_own_names()
        found = (self._agent(name, given) for name, given in wanted.items())
        return tuple(agent for agent in found if agent is not None)

    def _check_own_names(self) -> None:
        for tool in (*default_tools(), *optional_tools()):
            if tool.name in self.own.tools:
                rule = f"the tool {tool.name!r} must have another name: a built-in one has this"
                self.reading.complain("tools_from", rule)

    def _agent(self, name: str, given: AgentSettings) -> Agent | None:
        at = f"agents.{name}"
        instructions = _or_from_file(
            f"{at}.instructions",
            given.instructions,
            given.instructions_file,
            "",
            self.folder,
            self.reading,
        )
        try:
            checked_agent_id(name, at)
            self._check_models(given)
            workspace = self.home / Path(expanduser(given.workspace or f"workspaces/{name}"))
            refuse_around(self.home, workspace)
            return Agent(
                name,
                model=given.model,
                fallback_models=given.fallback_models,
                thinking=given.thinking,
                instructions=instructions or "",
                tools=self._tools(at, given.tools),
                has_default_tools=given.tools is None,
                mcp=given.mcp,
                workspace=workspace,
                shared_files=given.shared_files,
                queue=given.queue,
                limits=given.limits,
                compaction=given.compaction,
                proactive=given.proactive,
                heartbeat=given.heartbeat,
                budget=given.budget,
                quiet_hours=given.quiet_hours,
                throttle=given.throttle,
                routes=given.routes,
                approvals=given.approvals,
            )
        except InvalidInput as error:
            field = error.field.removeprefix(at).lstrip(".")
            self.reading.complain(f"{at}.{field}" if field else at, error.rule)
            return None

    def _tools(self, at: str, names: Sequence[str] | None) -> list[Tool]:
        """Return the tools that are named; without names, all of one's own."""
        if names is None:
            return list(self.own.tools.values())
        builtin = {tool.name: tool for tool in (*default_tools(), *optional_tools())}
        known = {**builtin, **self.own.tools}
        for position, tool in enumerate(names):
            if tool not in known and self.purpose.loads_tools:
                rule = f"must be one of {', '.join(known)}, not {tool[:60]!r}"
                self.reading.complain(f"{at}.tools[{position}]", rule)
        return [known[tool] for tool in names if tool in known]

    def _check_models(self, given: AgentSettings) -> None:
        named = {"model": given.model}
        named |= {f"fallback_models[{n}]": one for n, one in enumerate(given.fallback_models)}
        if given.heartbeat.model is not None:
            named["heartbeat.model"] = given.heartbeat.model
        for field, model in named.items():
            if self.purpose.needs_secrets:
                find(model, field, providers=self.providers)
            else:
                refuse_unknown(model, field, own=self.providers)


def build_outbound(
    written: SettingsFile, folder: Path, reading: Complaints
) -> dict[str, OutboundSettings]:
    """Return the receivers of webhooks, each with its secret."""
    found: dict[str, OutboundSettings] = {}
    for name, given in written.outbound.items():
        at = f"outbound.{name}"
        secret = _or_from_file(
            f"{at}.secret", given.secret or "", given.secret_file, "", folder, reading
        )
        if secret is None:
            continue
        if not secret and given.secret_file is None:
            reading.complain(at, "needs the key 'secret' or 'secret_file'")
            continue
        found[name] = msgspec.structs.replace(given, secret=secret, secret_file=None)
        try:
            refuse_bad_outbound(name, found[name])
        except InvalidInput as error:
            reading.complain(error.field, error.rule)
    return found


def build_hooks(
    written: SettingsFile, folder: Path, reading: Complaints, *, needs_secrets: bool
) -> dict[str, HookSettings]:
    """Return the senders of webhooks, each with its secret if that must be there."""
    found: dict[str, HookSettings] = {}
    agents = {MAIN, *written.agents}
    for name, given in written.hooks.items():
        at = f"hooks.{name}"
        if given.agent not in agents:
            rule = f"must be one of {', '.join(sorted(agents))}, not {given.agent[:60]!r}"
            reading.complain(f"{at}.agent", rule)
            continue
        if not given.secret and given.secret_file is None:
            reading.complain(at, NO_SECRET)
            continue
        secret: str | None = ""
        if needs_secrets:
            said, file = given.secret or "", given.secret_file
            secret = _or_from_file(f"{at}.secret", said, file, "", folder, reading)
        if secret is None:
            continue
        found[name] = msgspec.structs.replace(given, secret=secret, secret_file=None)
        try:
            hook_of(name, found[name], has_secret=needs_secrets)
        except InvalidInput as error:
            reading.complain(error.field, error.rule)
    return found


def build_mcp_servers(
    written: SettingsFile, folder: Path, reading: Complaints
) -> dict[str, McpServerSettings]:
    """Return the MCP servers, each with its token."""
    found: dict[str, McpServerSettings] = {}
    for name, given in written.mcp_servers.items():
        token = _or_from_file(
            f"mcp_servers.{name}.bearer", given.bearer or "", given.bearer_file, "", folder, reading
        )
        if token is None:
            continue
        found[name] = msgspec.structs.replace(given, bearer=token or None, bearer_file=None)
        try:
            refuse_bad_server(name, found[name])
        except InvalidInput as error:
            reading.complain(error.field, error.rule)
    return found


def build_providers(
    written: SettingsFile, folder: Path, reading: Complaints
) -> dict[str, ProviderSettings]:
    """Return what is said about providers of models, each with its key."""
    found: dict[str, ProviderSettings] = {}
    for name, given in written.providers.items():
        at = f"providers.{name}.key"
        key = _or_from_file(at, given.key or "", given.key_file, "", folder, reading)
        if key is None:
            continue
        has_key = given.key is not None or given.key_file is not None
        one = msgspec.structs.replace(given, key=key if has_key else None, key_file=None)
        try:
            refuse_bad_provider(name, one)
            found[name] = one
        except InvalidInput as error:
            field = error.field
            if field == at and given.key_file is not None:
                field = f"{at}_file"
            reading.complain(field, error.rule)
    return found


def check_server(server: ServerSettings, reading: Complaints) -> None:
    """Complain about names and origins that cannot be meant."""
    if not server.host or not is_host(server.host):
        reading.complain("server.host", "must be an address or a host name")
    for position, host in enumerate(server.hosts):
        if not is_host(host):
            reading.complain(f"server.hosts[{position}]", "must be a host name without a port")
    for position, origin in enumerate(server.origins):
        parts = urlsplit_or_none(origin)
        if parts is None or f"{parts[0]}://{parts[1]}" != origin:
            reading.complain(
                f"server.origins[{position}]", "must be an origin such as https://example.com"
            )
    for position, proxy in enumerate(server.trusted_proxies):
        try:
            trusted_network(proxy, f"server.trusted_proxies[{position}]")
        except InvalidInput as error:
            reading.complain(error.field, error.rule)


def is_host(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _HOST.fullmatch(name) is not None
    return True


def urlsplit_or_none(url: str) -> tuple[str, str] | None:
    """Return scheme and place of an http address, or None if it is no such thing."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        return None
    return (parts.scheme, parts.netloc) if is_good else None


def _check_zone(name: str | None, reading: Complaints) -> None:
    if name is None:
        return
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reading.complain(
            "timezone", f"must be an IANA name such as Europe/Berlin, not {name[:60]!r}"
        )


def _check_bindings(written: SettingsFile, reading: Complaints) -> None:
    agents = {MAIN, *written.agents}
    for position, binding in enumerate(written.bindings):
        if binding.agent not in agents:
            rule = f"must be one of {', '.join(sorted(agents))}, not {binding.agent[:60]!r}"
            reading.complain(f"bindings[{position}].agent", rule)
    try:
        Bindings(written.bindings)
    except InvalidInput as error:
        reading.complain(error.field, error.rule)


def _check_inbox(written: SettingsFile, reading: Complaints) -> None:
    agents = {MAIN, *written.agents}
    for name, source in written.inbox.sources.items():
        if source.agent is not None and source.agent not in agents:
            rule = f"must be one of {', '.join(sorted(agents))}, not {source.agent[:60]!r}"
            reading.complain(f"inbox.sources.{name}.agent", rule)


def _or_from_file(
    key: str, given: str, file: str | None, default: str, folder: Path, reading: Complaints
) -> str | None:
    """Return what a key says, or what the file says that its twin `…_file` names.

    None after having complained: what then follows from it is not worth telling.
    """
    if file is None:
        return given
    if given != default:
        reading.complain(f"{key}_file", f"must not be given together with {key!r}")
        return None
    path = folder / Path(expanduser(file))
    try:
        with path.open("rb") as opened:
            raw = opened.read(LARGEST_SECRET + 1)
        if len(raw) > LARGEST_SECRET:
            reading.complain(f"{key}_file", f"{path} is larger than {LARGEST_SECRET} bytes")
            return None
        return raw.decode().strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        reading.complain(f"{key}_file", f"{path} cannot be read: {why}")
        return None
