"""What a server says of its tools, checked before a model is told: any of it may be a lie."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from wakeful.tools.tool import NAME
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean, clean_json, one_line

MOST_TOOLS = 200  # of one server
MOST_REFUSALS = 20  # that are told of one listing
LONGEST_DESCRIPTION = 4096  # characters
LARGEST_SCHEMA = 32 * 1024  # bytes of JSON

_SEPARATORS = re.compile(r"[./ ]")


class Listed(Record):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Listing(Record):
    """What became of a server's list: its tools by the names a model is told, and the others."""

    tools: Mapping[str, Listed] = {}
    refused: tuple[str, ...] = ()  # a sentence each


def checked(server: str, listed: Iterable[Listed]) -> Listing:
    """Return the tools that can be used, in words that are short enough to be told.

    Takes a while over long lists; call it off the loop.
    """
    tools: dict[str, Listed] = {}
    refused: list[str] = []
    for tool in sorted(listed, key=lambda tool: tool.name):
        name = name_of(server, tool.name)
        fault = _fault(name, tool, tools)
        if fault is None:
            tools[name] = Listed(
                name=tool.name,
                description=_shortened(clean(tool.description)),
                schema=clean_json(dict(tool.schema)),
            )
        elif len(refused) < MOST_REFUSALS:
            refused.append(f"{one_line(tool.name, 80)!r} {fault}")
    return Listing(tools=tools, refused=tuple(refused))


def name_of(server: str, tool: str) -> str:
    """Return the name that models know a server's tool by."""
    return f"{server}_{_SEPARATORS.sub('_', tool)}"


def _fault(name: str, tool: Listed, tools: Mapping[str, Listed]) -> str | None:
    if not NAME.fullmatch(name):
        return "cannot be a tool's name, which has up to 64 letters, digits, '-' and '_'"
    if name in tools:
        return f"is left out: another tool is already named {name!r}"
    if len(tools) >= MOST_TOOLS:
        return f"is left out: a server may have {MOST_TOOLS} tools"
    return _schema_fault(tool.schema)


def _schema_fault(schema: Mapping[str, Any]) -> str | None:
    # One bad schema would make a provider refuse every question that carries it.
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError):
        return "has a schema that is not JSON"
    if size > LARGEST_SCHEMA:
        return f"has a schema of {size} bytes; the limit is {LARGEST_SCHEMA}"
    if schema.get("type") != "object":
        return "has a schema that does not describe an object"
    return _is_no_schema(schema)


def _is_no_schema(schema: Mapping[str, Any]) -> str | None:
    # Comes with the MCP library, and like it is loaded by those alone who have servers.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator

    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        return f"has a bad schema: {one_line(error.message, 200)}"
    except RecursionError:
        return "has a schema that is nested too deeply"
    except OverflowError as error:  # a pattern that counts too far
        return f"has a bad schema: {error}"
    return None


def _shortened(text: str) -> str:
    left = len(text) - LONGEST_DESCRIPTION
    return text if left <= 0 else f"{text[:LONGEST_DESCRIPTION]}… [{left} more characters were cut]"
