"""The JSON Schema of the settings file, and its reference page."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from wakeful.settings.file import SettingsFile
from wakeful.settings.keys import KEYS
from wakeful.vocabulary.queueing import DEFAULTS
from wakeful.vocabulary.record import Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_HEAD = """\
# Settings

One YAML file, `wakeful.yaml` in the home folder (`~/.wakeful`), or the one that `--config` or \
`WAKEFUL_CONFIG` names. Every key has a default, so an empty file works. What the file says is \
checked whole before any of it is used: an unknown key, a key given twice, a wrong type or a bad \
value is told with file, line, key and the valid choices.

`${NAME}` stands for a variable of the environment, `${NAME:-text}` for one with a default. A key \
that ends in `_file` names a file with the value, from the folder of the settings file on. \
`wakeful config schema` prints the JSON Schema, `wakeful config validate` checks a file.

After `SIGHUP`, or `wakeful config set`, a running server reads the file again. A broken file \
changes nothing and is reported, and so does one that could not work. Everything is changed in \
place: nobody waits, no turn is cut. A turn that is open goes on with what it opened with; \
whatever begins next takes what is new. `database`, `server.host`, `server.port` and the home \
folder need a new start, which the log says.

## Variables of the environment

| variable | meaning |
|---|---|
| `WAKEFUL_HOME` | the home folder; `--home` |
| `WAKEFUL_CONFIG` | the settings file; `--config` |
| `WAKEFUL_HOST`, `WAKEFUL_PORT` | instead of `server.host`, `server.port`; `--host`, `--port` |
| `WAKEFUL_DATABASE` | instead of `database` |
| `WAKEFUL_TOKEN` | the operator's token, at least 128 bits, instead of a generated one |

## Keys

`*` is a name of your choice, `[]` each item of a list.

| key | type | default | meaning |
|---|---|---|---|
"""


class ReferenceRow(Record):
    """One line of the reference."""

    key: str
    type: str
    default: str
    means: str


def json_schema() -> dict[str, Any]:
    """Return the schema of the file, each key with its meaning and its bounds."""
    raw = msgspec.json.schema(SettingsFile)
    root = _inlined(raw, cast("dict[str, Any]", raw["$defs"]), "")
    return {"$schema": DIALECT, "title": "wakeful.yaml", **root}


def reference() -> str:
    """Return the reference page in Markdown."""
    lines = [
        f"| `{row.key}` | {row.type} | {row.default} | {row.means} |"
        for row in rows(json_schema(), "")
    ]
    return _HEAD + "\n".join(lines) + "\n"


def rows(schema: dict[str, Any], path: str) -> Iterator[ReferenceRow]:
    """Yield the keys of a schema, in the order of the file."""
    for name, child in schema.get("properties", {}).items():
        yield from _rows_of(child, f"{path}.{name}" if path else name)
    if isinstance(extra := schema.get("additionalProperties"), dict):
        yield from _rows_of(cast("dict[str, Any]", extra), f"{path}.*")


def _rows_of(schema: dict[str, Any], path: str) -> Iterator[ReferenceRow]:
    kind = _without_null(schema)
    if (key := KEYS.get(path)) is not None:
        default = "" if path.endswith("*") else _default(schema)
        if path.startswith("queue."):  # the last level: what is not given here is known
            default = f"`{getattr(DEFAULTS, path.removeprefix('queue.'))}`"
        yield ReferenceRow(key=path, type=_type(kind), default=default, means=key.means)
    if kind.get("type") == "array":
        yield from rows(_without_null(kind["items"]), f"{path}[]")
    else:
        for part in kind.get("anyOf", [kind]):
            yield from rows(part, path)


def _inlined(schema: dict[str, Any], defs: dict[str, Any], path: str) -> dict[str, Any]:
    schema = dict(schema)
    schema.pop("$defs", None)
    if (reference := schema.pop("$ref", None)) is not None:
        schema = {**defs[reference.rpartition("/")[2]], **schema}
    schema.pop("title", None)
    schema.pop("description", None)
    if (key := KEYS.get(path)) is not None:
        schema["description"] = key.means
        if key.low is not None:
            schema |= {"minimum": key.low, "maximum": key.high}
    if "properties" in schema:
        schema["additionalProperties"] = False
        schema["properties"] = {
            name: _inlined(child, defs, f"{path}.{name}" if path else name)
            for name, child in schema["properties"].items()
        }
    elif isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = _inlined(schema["additionalProperties"], defs, f"{path}.*")
    if schema.get("items"):
        schema["items"] = _inlined(schema["items"], defs, f"{path}[]")
    if "anyOf" in schema:
        schema["anyOf"] = [_inlined(part, defs, path) for part in schema["anyOf"]]
    return schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = schema.get("anyOf", [])
    kinds = [part for part in parts if part.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else schema


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in sorted(map(str, schema["enum"])))
    if schema.get("type") == "array":
        inner = _without_null(schema["items"]).get("type")
        return "list of text" if inner == "string" else "list"
    if len(parts := schema.get("anyOf", [])) > 1:
        return " or ".join(_type(part) for part in parts)
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "flag"}
    bounds = ""
    if "minimum" in schema:
        bounds = f", {schema['minimum']} to {schema['maximum']}"
    return words.get(str(schema.get("type")), "keys and values") + bounds


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema:
        return "needed"
    value = schema["default"]
    if value is None or value in ("", (), [], {}):
        return ""
    return f"`{value}`"
