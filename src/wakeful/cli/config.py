"""`config`: look at the settings, change one, check a file, print its schema."""

import os
import signal
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer
import yaml

from wakeful.cli.context import CliContext
from wakeful.cli.exits import Busy, Missing, Misused
from wakeful.operations import server_note
from wakeful.operations.server_note import Reload, RunningServer
from wakeful.settings.build import MAIN
from wakeful.settings.edit import with_value
from wakeful.settings.file import AgentSettings
from wakeful.settings.keys import key_of
from wakeful.settings.load import load, load_text
from wakeful.settings.purpose import SettingsPurpose
from wakeful.settings.schema import json_schema

HIDDEN = "(hidden)"
RELOAD_S = 15.0  # how long a server may take to read its settings again
LOOK_EVERY_S = 0.05

Key = Annotated[str, typer.Argument(help="For example agents.main.model.")]


def get(
    context: CliContext, key: Annotated[str, typer.Argument(help="A key; all without.")] = ""
) -> None:
    """Print the settings in force, or one of them; secrets are hidden."""
    loaded = context.loaded
    agents = {MAIN: AgentSettings(), **loaded.written.agents}
    written = msgspec.structs.replace(loaded.written, server=loaded.server, agents=agents)
    shown = hidden(msgspec.to_builtins(written), "")
    for name in key.split(".") if key else ():
        if not isinstance(shown, dict) or name not in shown:
            raise Missing(f"there is no key {key!r} in the settings")
        shown = cast("dict[str, Any]", shown)[name]
    if isinstance(shown, dict | list):
        text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).rstrip()
    else:
        text = "null" if shown is None else str(cast("object", shown))
    context.out.data(shown, [text])


def set_(
    context: CliContext, key: Key, value: Annotated[str, typer.Argument(help="YAML.")]
) -> None:
    """Change one key in the file, after checking all of it; a running server follows at once."""
    before = context.file.read_text(encoding="utf-8") if context.file.exists() else None
    after = with_value(before or "", key, value, str(context.file))
    load_text(after, context.file, context.environ, SettingsPurpose.CHECK)
    _replace(context.file, after)
    server = context.running
    when = "the next start reads it"
    outcome: Reload | None = None
    if server is not None:
        outcome = _reloaded(context, server)
        if outcome.problems:
            _put_back(context.file, before)
            _reloaded(context, server)  # or `doctor` would go on about a file that is good again
            why = "\n".join(outcome.problems)
            raise Misused(f"the server refuses it, and the file is as it was: {why}")
        when = _what_came_of(outcome, key)
    data = {"file": str(context.file), "key": key, "server": outcome}
    context.out.data(data, [f"{key} is set in {context.file}; {when}"])


def _reloaded(context: CliContext, server: RunningServer) -> Reload:
    """Let the server read its settings again; return what came of it."""
    number = server.reload.number if server.reload else 0
    os.kill(server.pid, signal.SIGHUP)
    for _ in range(int(RELOAD_S / LOOK_EVERY_S)):
        found = server_note.find(context.home)
        if found is not None and found.reload is not None and found.reload.number > number:
            return found.reload
        context.pause(LOOK_EVERY_S)
    raise Busy(
        f"the file is written, but the server has not read it within {RELOAD_S:g} s; "
        "look at `wakeful logs`"
    )


def _what_came_of(outcome: Reload, key: str) -> str:
    waiting = [name for name in outcome.kept if key == name or name.startswith(f"{key}.")]
    if waiting:
        return f"only a new start of the server changes {', '.join(waiting)}"
    return "the server works by it" if outcome.changed else "for the server nothing changed"


def validate(
    context: CliContext, file: Annotated[Path | None, typer.Argument(help="Another file.")] = None
) -> None:
    """Check the settings file without using it."""
    loaded = load(file or None, context.environ, SettingsPurpose.CHECK)
    named = (
        "no file: every key has its default" if loaded.file is None else f"{loaded.file} is good"
    )
    context.out.data({"file": str(loaded.file) if loaded.file else None, "is_valid": True}, [named])


def schema(context: CliContext) -> None:
    """Print the JSON Schema of the settings file."""
    document = json_schema()
    context.out.data(
        document, [msgspec.json.format(msgspec.json.encode(document), indent=2).decode()]
    )


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


def _put_back(file: Path, content: str | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        _replace(file, content)


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
