"""The reference page of the command line, made from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from wakeful.cli.app import tree
from wakeful.cli.exits import ExitCode
from wakeful.cli.verb import SHARED

_HEAD = """\
# Command line

`wakeful VERB …`, or `python -m wakeful VERB …`. Where an agent, a session, a turn or a token is \
asked for, its name or its id does.

Every verb takes `--home FOLDER` (`WAKEFUL_HOME`, default `~/.wakeful`), `--config FILE` \
(`WAKEFUL_CONFIG`) and `--debug`, which shows the traceback of an error; every verb that prints \
data takes `--json`: one document, or one document per line for what streams (`chat`, `tail`, \
`logs`).

Verbs speak to the server that runs in the home folder, or to the one `WAKEFUL_URL` names, with \
the token in `operator.token` or `WAKEFUL_TOKEN`. While no server runs, those marked * read the \
database as it is and change nothing; this needs SQLite.

Times are shown in the zone of the settings. Colours are for terminals; `NO_COLOR` turns them off.

## Exit codes

| code | meaning |
|---|---|
"""
_MEANINGS = {
    ExitCode.OK: "it worked",
    ExitCode.FAILURE: "it was tried and did not work, or the turn did not end well",
    ExitCode.USAGE: "the command, a value or the settings break a rule",
    ExitCode.UNREACHABLE: "no server answers",
    ExitCode.NOT_FOUND: "the thing named does not exist",
    ExitCode.DENIED: "the token is missing, wrong, or does not allow this",
    ExitCode.BUSY: "not now: try again later",
    ExitCode.STALLED: "the server hung and ended itself; whoever supervises it starts it again",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}
WITHOUT_SERVER = frozenset({"status", "why", "notices", "heartbeat", "quiet", "usage"}) | {
    "activity",
    "cron list",
    "cron show",
    "cron runs",
    "cron why",
    "sessions list",
    "sessions show",
    "sessions export",
    "sessions search",
    "agents list",
    "agents show",
    "tokens list",
}


def reference() -> str:
    """Return the page in Markdown."""
    codes = "".join(f"| {code.value} | {_MEANINGS[code]} |\n" for code in ExitCode)
    verbs = "".join(_rows(typer.main.get_command(tree()), ""))
    return f"{_HEAD}{codes}\n## Verbs\n\n| verb | what it does |\n|---|---|\n{verbs}"


def _rows(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _rows(child, f"{path} {name}".strip())
        return
    own = [parameter for parameter in command.params if parameter.name not in SHARED]
    usage = " ".join(filter(None, (path, *map(_usage, own))))
    mark = " *" if path in WITHOUT_SERVER else ""
    yield f"| `{usage}`{mark} | {' '.join(command.help.split())} |\n"


def _usage(parameter: Any) -> str:
    if parameter.name == "help":
        return ""
    if parameter.param_type_name == "argument":
        name = parameter.name.upper()
        return name if parameter.required else f"[{name}]"
    longest = max(parameter.opts, key=len)
    return f"[{longest}]" if parameter.is_flag else f"[{longest} …]"
