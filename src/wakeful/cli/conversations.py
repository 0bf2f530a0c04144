"""`sessions reset`, `fork`, `compact`, `undo-compaction` and `rm`: conversations, changed."""

from typing import Annotated, Any

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.look import SessionName
from wakeful.cli.output import counted, safe
from wakeful.cli.session_names import session_named, session_path

LONGEST_WAIT_S = 120

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ENTRY",
        help="The last entry to keep, by its id, the beginning of it, or its id in a file; "
        "default: the newest.",
    ),
]
To = Annotated[
    str | None, typer.Option("--to", metavar="KEY", help="The session to make; default: this one.")
]
Summary = Annotated[
    str | None,
    typer.Option("--summary", metavar="TEXT", help="What the path that is left came to."),
]
Wish = Annotated[str, typer.Argument(help="What matters in the summary.")]
Yes = Annotated[bool, typer.Option("--yes", help="Delete the automations that run there, too.")]


def reset(context: CliContext, session: SessionName) -> None:
    """Begin a new conversation; the old one stays readable."""
    done = context.needed_server().post(f"{session_path(session)}/reset")
    what = "begins anew when its turn has ended" if done["is_waiting"] else "begins anew"
    context.out.data(done, [f"{safe(session)} {what}"])


def fork(
    context: CliContext, session: SessionName, at: At = None, to: To = None, summary: Summary = None
) -> None:
    """Go on from an earlier entry: on a new branch, or in a new session."""
    body = {"at": at, "to": None if to is None else session_named(to), "summary": summary}
    row = context.needed_server().post(f"{session_path(session)}/fork", body)
    entries = counted(row["entries"], "entry", "entries")
    context.out.data(row, [f"{row['key']} goes on after {entries}"])


def compact(context: CliContext, session: SessionName, wish: Wish = "") -> None:
    """Compact the older part of a conversation into a summary, and wait until it is done."""
    path = session_path(session)
    context.needed_server().get(path)  # a name that is no session's makes none
    said = context.needed_server().post(
        f"{path}/messages", {"text": f"/compact {wish}"}, wait=LONGEST_WAIT_S
    )
    turn: dict[str, Any] = said.get("turn") or {"state": "open", "reply": None}
    context.out.data(said, [safe(turn["reply"] or said["reply"])])
    if turn["state"] not in ("done", "open"):
        raise CommandFailed("the conversation is as it was")


def undo_compaction(context: CliContext, session: SessionName) -> None:
    """Give back the view before the last compaction; what was said since then stays."""
    entry = context.needed_server().post(f"{session_path(session)}/undo-compaction")
    context.out.data(entry, [f"{safe(session)} shows again what was compacted"])


def remove(context: CliContext, session: SessionName, yes: Yes = False) -> None:
    """Delete a session and all that was said in it; what runs there is stopped first."""
    confirm = "true" if yes else None
    done: dict[str, Any] = context.needed_server().delete(session_path(session), confirm=confirm)
    if done["deleted"]:
        context.out.data(done, [f"{safe(session)} is gone"])
        return
    names = ", ".join(safe(one["name"], 80) for one in done["automations"])
    context.out.data(done, [])
    raise CommandFailed(f"automations run there: {names}; `--yes` deletes them, too")
