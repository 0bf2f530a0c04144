"""The command `wakeful`: every verb, in one tree."""

import os
import sys

import typer

from wakeful.cli import (
    attachments,
    begin,
    care,
    config,
    conversations,
    login,
    logs,
    look,
    search,
    switch,
    tail,
    talk,
    tokens,
    transfer,
    up,
)
from wakeful.cli.verb import verb

_WANTS_COLOURS = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

app = typer.Typer(
    name="wakeful",
    help="Keep agents alive: start the server, talk to them, look at what they did and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Rich is loaded only for a terminal that wants colours.
    rich_markup_mode="rich" if _WANTS_COLOURS else None,
)

verb(app, "up")(up.up)
verb(app, "init")(begin.init)
verb(app, "login")(login.login)
verb(app, "chat")(talk.chat)
verb(app, "send")(talk.send)
verb(app, "status")(look.status)
verb(app, "why")(look.why)
verb(app, "tail")(tail.tail)
verb(app, "logs")(logs.logs)
verb(app, "doctor")(care.doctor)
verb(app, "completion", prints_data=False)(begin.completion)
verb(app, "version")(begin.version)
verb(app, "halt")(switch.halt)
verb(app, "resume")(switch.resume)
verb(look.sessions, "search")(search.search)
verb(look.sessions, "reset")(conversations.reset)
verb(look.sessions, "fork")(conversations.fork)
verb(look.sessions, "compact")(conversations.compact)
verb(look.sessions, "undo-compaction")(conversations.undo_compaction)
verb(look.sessions, "rm")(conversations.remove)
verb(look.sessions, "export")(transfer.export)
verb(look.sessions, "import")(transfer.import_)
verb(look.sessions, "attachments")(attachments.attachments)
verb(look.sessions, "take")(attachments.take)
app.add_typer(look.sessions, name="sessions")
app.add_typer(look.agents, name="agents")
app.add_typer(tokens.app, name="tokens")
app.add_typer(config.app, name="config")
app.add_typer(care.backups, name="backup")
app.add_typer(care.databases, name="db")


def main() -> None:
    """Run the command line; the exit codes stand in `wakeful.cli.exits`."""
    app(prog_name="wakeful")
