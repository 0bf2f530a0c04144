"""`hooks list`, `hooks test`: who may send webhooks, and whether that works."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.output import safe
from wakeful.vocabulary.errors import InvalidInput

STREAM = "-"
LONGEST_TEXT = 300  # characters that are shown of what an agent reads

HookName = Annotated[str, typer.Argument(help="The name of a hook in the settings.")]
PayloadFile = Annotated[
    str, typer.Option("--payload", help="A file with what it carries, or - for standard input.")
]


def list_(context: CliContext) -> None:
    """List the hooks, and what came to them."""
    page = context.needed_server().get("/api/hooks")
    head = ["hook", "verified by", "goes to", "priority", "taken", "last", "refused", "why"]
    rows = [_row(context, one) for one in page["items"]]
    nothing = "no hooks: the key `hooks` of the settings names them"
    context.out.data(page, context.out.table(head, rows) or [nothing])


def try_(context: CliContext, name: HookName, payload: PayloadFile = "") -> None:
    """Send a hook a signed example by its own route; show the receipt and the agent's text."""
    body = {"payload": _payload(payload)} if payload else {}
    server = context.needed_server()
    receipt = server.post(f"/api/hooks/{segment(name)}/test", body)
    text = server.get(f"/api/stimuli/{segment(receipt['stimulus_id'])}")["text"]
    why = f" ({receipt['reason']})" if receipt.get("reason") else ""
    line = f"{receipt['outcome']}{why}: {receipt['stimulus_id']} in {receipt['session_key']}"
    reads = f"the agent reads: {safe(text, LONGEST_TEXT)}"
    context.out.data({**receipt, "text": text}, [safe(line), reads])


def _row(context: CliContext, one: dict[str, Any]) -> list[object]:
    return [
        one["name"],
        one["verify"],
        one["session"] or _place(one),
        one["priority"],
        one["accepted"],
        context.how_long(one["last_at"]) if one["last_at"] else "",
        one["refused"] or "",
        one["last_refusal"] or "",
    ]


def _place(one: dict[str, Any]) -> str:
    """Return where it goes that names no session: what is urgent opens a turn at once."""
    where = "Activity" if one["priority"] == "now" else "the inbox"
    return f"{where} of {one['agent']}"


def _payload(file: str) -> Any:
    """Return what a file holds: JSON as such, anything else as text."""
    if file == STREAM:
        text = typer.get_text_stream("stdin").read()
    else:
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput("payload", f"{file} cannot be read: {error}") from None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
