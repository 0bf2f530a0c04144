"""The command `wakeful`: every verb in one table; a run loads the one that was asked for."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer

from wakeful import __version__
from wakeful.cli.plain_values import spare_plain_values
from wakeful.cli.verb import verb

HELP = "Keep agents alive: start the server, talk to them, look at what they did and why."

# Where each verb is: its module in this room, and the function.
VERBS: Mapping[str, str] = {
    "up": "up:up",
    "init": "begin:init",
    "login": "tokens:login",
    "chat": "talk:chat",
    "send": "talk:send",
    "status": "look:status",
    "why": "look:why",
    "notices": "look:notices",
    "activity": "activity:activity",
    "tail": "tail:tail",
    "logs": "logs:logs",
    "doctor": "care:doctor",
    "completion": "completion:completion",
    "version": "begin:version",
    "halt": "switch:halt",
    "resume": "switch:resume",
    "sleep": "rest:sleep",
    "wake": "rest:wake",
    "heartbeat": "rest:heartbeat",
    "quiet": "rest:quiet",
    "usage": "budget:usage",
    "forecast": "forecast:forecast",
    "budget show": "budget:show",
    "budget raise": "budget:increase",
    "approvals list": "approvals:list_",
    "approvals show": "approvals:show",
    "approvals approve": "approvals:approve",
    "approvals deny": "approvals:deny",
    "inbox list": "inbox:list_",
    "inbox show": "inbox:show",
    "inbox add": "inbox:add",
    "inbox dismiss": "inbox:dismiss",
    "cron add": "cron:add",
    "cron list": "cron:list_",
    "cron show": "cron:show",
    "cron edit": "cron:edit",
    "cron pause": "cron:pause",
    "cron resume": "cron:resume",
    "cron run": "cron:run",
    "cron runs": "cron:runs",
    "cron why": "cron:why",
    "cron rm": "cron:remove",
    "cron import": "cron:import_",
    "sessions list": "look:list_sessions",
    "sessions show": "look:show_session",
    "sessions search": "search:search",
    "sessions reset": "conversations:reset",
    "sessions fork": "conversations:fork",
    "sessions compact": "conversations:compact",
    "sessions undo-compaction": "conversations:undo_compaction",
    "sessions rm": "conversations:remove",
    "sessions export": "transfer:export",
    "sessions import": "transfer:import_",
    "sessions attachments": "attachments:attachments",
    "sessions take": "attachments:take",
    "agents list": "look:list_agents",
    "agents show": "look:show_agent",
    "hooks list": "hooks:list_",
    "hooks test": "hooks:try_",
    "tokens add": "tokens:add",
    "tokens list": "tokens:list_",
    "tokens revoke": "tokens:revoke",
    "config get": "config:get",
    "config set": "config:set_",
    "config validate": "config:validate",
    "config schema": "config:schema",
    "backup create": "backups:create",
    "backup verify": "backups:verify",
    "backup restore": "backups:restore",
    "db migrate": "databases:migrate",
    "db check": "databases:check_",
}
GROUPS = {
    "inbox": "What programs and other agents left for agents.",
    "cron": "Automations: what agents do at certain times.",
    "sessions": "Conversations.",
    "agents": "Agents.",
    "budget": "What agents may spend.",
    "approvals": "What agents ask before they act.",
    "hooks": "Hooks: who may send webhooks.",
    "tokens": "Tokens: who may come in.",
    "config": "Look at the settings and change them.",
    "backup": "Copies of the database.",
    "db": "The database itself.",
}
WITHOUT_JSON = frozenset({"completion"})
_DASHED = re.compile(r"-(?![hns]$|n\d+$)\w")  # not the options of one letter
NAMES_OF_HELP = {"help_option_names": ["-h", "--help"]}


def _tell_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"wakeful {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version."),
]


def _shared_options(version: Version = False) -> None:
    pass


def tree(wanted: Callable[[str], bool] = lambda _: True) -> typer.Typer:
    """Return the commands, or those of them that are wanted."""
    app = _group("wakeful", HELP)
    groups = {name: _group(name, help_text) for name, help_text in GROUPS.items()}

    app.callback()(_shared_options)
    for path, place in VERBS.items():
        if wanted(path):
            group, _, name = path.rpartition(" ")
            module, _, function = place.partition(":")
            act = getattr(import_module(f"wakeful.cli.{module}"), function)
            verb(groups.get(group, app), name, prints_data=path not in WITHOUT_JSON)(act)
    for name, group in groups.items():
        if any(map(wanted, (path for path in VERBS if path.startswith(f"{name} ")))):
            app.add_typer(group, name=name)
    return app


def main() -> None:
    """Run the command line; the exit codes stand in `wakeful.cli.exits`."""
    words = with_dashed_words(sys.argv[1:])
    command = typer.main.get_command(tree(_asked_for(words)))
    spare_plain_values(command)
    command(words, prog_name="wakeful")


def with_dashed_words(words: list[str]) -> list[str]:
    """Return a command line in which the `-words` of a search are no options.

    They go to the end, where none is one; the order of a search's words does not count.
    """
    if words[:2] != ["sessions", "search"] or "--" in words:
        return words
    dashed = [word for word in words if _DASHED.match(word)]
    return [*(word for word in words if word not in dashed), "--", *dashed] if dashed else words


def _asked_for(words: list[str]) -> Callable[[str], bool]:
    """Return what tells the verbs that a run needs: loading all of them takes half a second."""
    group = words[0] if words else ""
    verb_of_group = " ".join(words[:2])
    if "_WAKEFUL_COMPLETE" in os.environ:
        return lambda _: True
    if words == ["--version"]:
        return lambda path: path == "tail"  # a light one: there must be some verb
    if verb_of_group in VERBS and group in GROUPS:
        return lambda path: path == verb_of_group
    if group in GROUPS:
        return lambda path: path.startswith(f"{group} ")
    return (lambda path: path == group) if group in VERBS else (lambda _: True)


def _group(name: str, help_text: str) -> typer.Typer:
    wants_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    options: dict[str, Any] = {
        "context_settings": NAMES_OF_HELP,
        "no_args_is_help": True,
        "pretty_exceptions_enable": False,
        # Rich is loaded only for a terminal that wants colours.
        "rich_markup_mode": "rich" if wants_colours else None,
    }
    return typer.Typer(name=name, help=help_text, **options)
