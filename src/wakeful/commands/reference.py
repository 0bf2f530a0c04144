"""The reference page of the commands, written from their table."""

from wakeful.commands.command import CommandEffect, Who
from wakeful.commands.table import TABLE

_HEAD = """\
# Commands

<!-- Written by `make docs` from the table in the code; edit that instead. -->

What you may say to the runtime itself, in any conversation: over HTTP, in `wakeful chat`, at a door
of your own. A command is done at once, also while a turn runs, and answered at once; the transcript
keeps a line of it that no model reads. A word after a slash that is not in this table is answered
with the nearest ones and reaches no model; what is no word (`/etc/hosts`) is text. From the
operator a bare `stop` counts as `/stop`. A command that is repeated with its key
(`Idempotency-Key`, or `dedup_key`) is not done again, not even after a crash: its first answer
comes again.

Inside a longer message, `/queue` with at least one argument holds for that message alone and is cut
out of it: `look at the logs /queue collect debounce:5s`. The first eight are read, each with its
first eight arguments; what follows them is text.

| command | what it does | while a turn runs | who |
|---|---|---|---|
"""


def reference() -> str:
    """Return the page."""
    rows = [
        f"| `{command.usage.replace('|', chr(92) + '|')}` | {command.help} | "
        f"{'' if command.effect is CommandEffect.NONE else command.effect.value} | "
        f"{'the operator' if command.who is Who.OPERATOR else 'whoever may send'} |\n"
        for command in TABLE.values()
    ]
    return _HEAD + "".join(rows)
