"""`config`: look at the settings, change one, check a file, print its schema."""

import os
import signal
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer
import yaml

from wakeful.cli import running
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Missing
from wakeful.cli.verb import verb
from wakeful.settings.edit import with_value
from wakeful.settings.keys import key_of
from wakeful.settings.load import load, load_text
from wakeful.settings.schema import json_schema

HIDDEN = "(hidden)"

app = typer.Typer(help="Look at the settings and change them.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(help="For example agents.main.model.")]


@verb(app, "get")
def get(
    desk: CliContext, key: Annotated[str, typer.Argument(help="A key; all without.")] = ""
) -> None:
    """Print the settings in force, or one of them; secrets are hidden."""
    shown = hidden(msgspec.to_builtins(desk.loaded.written), "")
    for name in key.split(".") if key else ():
        if not isinstance(shown, dict) or name not in shown:
            raise Missing(f"there is no key {key!r} in the settings")
        shown = cast("dict[str, Any]", shown)[name]
    if isinstance(shown, dict | list):
        text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).rstrip()
    else:
        text = "null" if shown is None else str(cast("object", shown))
    desk.out.data(shown, [text])


@verb(app, "set")
def set_(desk: CliContext, key: Key, value: Annotated[str, typer.Argument(help="YAML.")]) -> None:
    """Change one key in the file, after checking all of it; a running server follows at once."""
    before = desk.file.read_text(encoding="utf-8") if desk.file.exists() else ""
    after = with_value(before, key, value, str(desk.file))
    load_text(after, desk.file, desk.environ)
    _replace(desk.file, after)
    server = running.find(desk.home)
    if server is not None:
        os.kill(server.pid, signal.SIGHUP)
    told = "the server reads it now" if server else "the next start reads it"
    desk.out.data({"file": str(desk.file), "key": key}, [f"{key} is set in {desk.file}; {told}"])


@verb(app, "validate")
def validate(
    desk: CliContext, file: Annotated[Path | None, typer.Argument(help="Another file.")] = None
) -> None:
    """Check the settings file without using it."""
    loaded = load(file or None, desk.environ)
    named = (
        "no file: every key has its default" if loaded.file is None else f"{loaded.file} is good"
    )
    desk.out.data({"file": str(loaded.file) if loaded.file else None, "is_valid": True}, [named])


@verb(app, "schema")
def schema(desk: CliContext) -> None:
    """Print the JSON Schema of the settings file."""
    document = json_schema()
    desk.out.data(document, [msgspec.json.format(msgspec.json.encode(document), indent=2).decode()])


def hidden(value: Any, path: str) -> Any:
    """Return settings with every secret hidden."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: hidden(child, f"{path}.{name}" if path else name) for name, child in pairs}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [hidden(child, f"{path}[{position}]") for position, child in enumerate(items)]
    key = key_of(path)
    is_secret = key is not None and key.is_secret and value not in (None, "", "sqlite")
    return HIDDEN if is_secret else value


def _replace(file: Path, content: str) -> None:
    """Write the file whole or not at all, with the mode it had."""
    if not file.parent.exists():
        file.parent.mkdir(parents=True)
        file.parent.chmod(0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        os.fchmod(descriptor, mode)
        opened.write(content)
        opened.flush()
        os.fsync(descriptor)
    draft.rename(file)
