"""What an operator says of an MCP server."""

import re
from collections.abc import Mapping
from enum import StrEnum

from wakeful.net.addresses import is_public
from wakeful.net.target import parse
from wakeful.tools.tool import DEFAULT_TIMEOUT_S, Effect
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

# No underscore: the name of a tool is `{server}_{tool}`, and must say where the server's ends.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_VALUE = re.compile(r"[\x20-\x7e]{1,4096}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class RemoteEffect(StrEnum):
    """What a tool elsewhere may do; decides what a crash leaves."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    EFFECT = "effect"


class RemoteTool(Record):
    """What is different about one tool of a server."""

    effect: RemoteEffect | None = None
    timeout_s: float | None = None


class McpServerSettings(Record):
    """An MCP server: an address to speak to, or a command to run."""

    url: str | None = None
    command: str | tuple[str, ...] = ()  # its words, or the program alone
    args: tuple[str, ...] = ()  # words after those of the command
    env: Mapping[str, str] = {}  # what the command is given beside the few harmless variables
    folder: str | None = None  # where it runs; None: a folder of its own in the home folder
    headers: Mapping[str, str] = {}
    bearer: str | None = None
    bearer_file: str | None = None
    effect: RemoteEffect = RemoteEffect.EFFECT
    timeout_s: float = DEFAULT_TIMEOUT_S
    tools: Mapping[str, RemoteTool] = {}  # by the server's own name for it
    allow_private: bool = False  # the host may have an address that is not public
    trusted: bool = False  # what it says is the operator's word, and no text from outside

    @property
    def words(self) -> tuple[str, ...]:
        """The command and its arguments, word by word."""
        first = (self.command,) if isinstance(self.command, str) else self.command
        return first + self.args

    def effect_of(self, tool: str) -> Effect:
        own = self.tools.get(tool)
        return Effect((own and own.effect) or self.effect)

    def timeout_of(self, tool: str) -> float:
        own = self.tools.get(tool)
        return (own and own.timeout_s) or self.timeout_s


def refuse_bad_server(name: str, server: McpServerSettings) -> None:
    """Raise for a server that nobody could speak to."""
    at = f"mcp_servers.{name}"
    if not _NAME.fullmatch(name):
        raise InvalidInput(at, "must have a name of 1 to 32 small letters, digits and '-'")
    if (server.url is None) is (not server.command):
        raise InvalidInput(at, "needs either 'url' or 'command'")
    if server.url is not None:
        _check_address(at, server, server.url)
    elif server.headers or server.bearer or server.allow_private:
        raise InvalidInput(at, "'headers', 'bearer' and 'allow_private' go with 'url' only")
    else:
        _check_command(at, server)
    for variable, value in server.env.items():
        if not _VARIABLE.fullmatch(variable) or "\0" in value:
            raise InvalidInput(f"{at}.env.{variable[:80]}", "cannot be a variable")


def _check_command(at: str, server: McpServerSettings) -> None:
    command = server.command
    if isinstance(command, str) and len(command.split()) > 1:
        rule = "must be a list of words, or the program alone with the other words in 'args'"
        raise InvalidInput(f"{at}.command", rule)
    if not server.words[0] or any("\0" in word for word in server.words):
        raise InvalidInput(f"{at}.command", "must be a list of words, the program first")


def _check_address(at: str, server: McpServerSettings, url: str) -> None:
    target = parse(url, f"{at}.url")
    if target.address is not None and not server.allow_private and not is_public(target.address):
        rule = "has an address that is not public; 'allow_private: true' permits it"
        raise InvalidInput(f"{at}.url", rule)
    if server.env or server.folder or server.args:
        raise InvalidInput(at, "'args', 'env' and 'folder' go with 'command' only")
    for header, value in server.headers.items():
        # Not the value: it may be a secret.
        if not _HEADER.fullmatch(header) or not _VALUE.fullmatch(value):
            raise InvalidInput(f"{at}.headers.{header[:80]}", "must be printable ASCII on one line")
        if header.lower() == "authorization" and server.bearer:
            raise InvalidInput(f"{at}.bearer", "must not be given together with 'Authorization'")
    if server.bearer is not None and not _VALUE.fullmatch(server.bearer):
        raise InvalidInput(f"{at}.bearer", "must be printable ASCII on one line")
