"""The text of a settings file as a tree of nodes that know their lines."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from wakeful.settings.problems import BadSettings, SettingsProblem

LARGEST_FILE = 1024 * 1024

_TAG = "tag:yaml.org,2002:"
TEXT, NULL, BOOL, INT, FLOAT = (_TAG + name for name in ("str", "null", "bool", "int", "float"))
_KNOWN_TAGS = frozenset({TEXT, NULL, BOOL, INT, FLOAT, _TAG + "map", _TAG + "seq"})

# `${NAME}` or `${NAME:-default}`. While the YAML is parsed its three marks are other characters,
# one for one: a brace would end a plain word inside of `{…}`, and no line or column may move.
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)((?::-[^{}\n]*)?)\}")
_MARKS = ("\ue000", "\ue001", "\ue002")
_MARKED = re.compile("\ue000\ue001([A-Za-z_][A-Za-z0-9_]*)(?::-([^\ue002]*))?\ue002")


class Resolver(yaml.SafeLoader):
    """Words of YAML 1.2: `on` and `no` are text, and so is 22:00."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            here: Any = self
            rule = "aliases are not supported: write it out"
            raise yaml.MarkedYAMLError(None, None, rule, here.peek_event().start_mark)
        return super().compose_node(parent, index)  # pyright: ignore[reportArgumentType]


for _name, _pattern, _first in (
    (NULL, r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    (BOOL, r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    (INT, r"[-+]?[0-9]+", list("-+0123456789")),
    (FLOAT, r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    cast("Any", Resolver).add_implicit_resolver(_name, re.compile(f"^{_pattern}$"), _first)


def parsed(text: str, place: str) -> yaml.Node | None:
    """Return the root of a document, None if it is empty; raise BadSettings if it is no YAML."""
    if any(mark in text for mark in _MARKS):
        line = text[: min(text.find(mark) for mark in _MARKS if mark in text)].count("\n") + 1
        raise BadSettings([_syntax(place, line, "holds a character of a private area")])
    dollar, opening, closing = _MARKS
    protected = _REFERENCE.sub(lambda ref: f"{dollar}{opening}{ref[1]}{ref[2]}{closing}", text)
    try:
        loader = Resolver(protected)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise BadSettings([_syntax(place, line, f"not YAML: {error.reason}")]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        rule = " ".join(filter(None, (error.context, error.problem)))
        raise BadSettings([_syntax(place, line, f"not YAML: {shown(rule)}")]) from None
    except RecursionError:
        raise BadSettings([_syntax(place, 1, "not YAML: nested too deeply")]) from None
    except ValueError as error:  # what the scanner makes of absurd escapes
        raise BadSettings([_syntax(place, 1, f"not YAML: {error}")]) from None


def is_reference(node: yaml.ScalarNode) -> bool:
    return _MARKED.search(node.value) is not None


def expanded(node: yaml.ScalarNode, environ: Mapping[str, str]) -> str:
    """Return a scalar's text with the environment in place; KeyError names what is not set."""

    def value(found: re.Match[str]) -> str:
        known = environ.get(found[1])
        if known:
            return known
        if found[2] is None:
            raise KeyError(found[1])
        return found[2]

    return _MARKED.sub(value, node.value)


def tag_of(node: yaml.ScalarNode, text: str) -> str:
    """Return what kind of value a scalar is, once its text is known."""
    if node.style is not None or node.tag not in _KNOWN_TAGS:
        return node.tag
    for tag, pattern in Resolver.yaml_implicit_resolvers.get(text[:1], []):
        if pattern.match(text):
            return tag
    return TEXT


def is_tagged(node: yaml.Node) -> bool:
    """Tell whether somebody asked for a type that this file does not know."""
    return node.tag not in _KNOWN_TAGS


def line_of(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def shown(text: str) -> str:
    """Return text with its references as they were written."""
    return text.replace("\ue000", "$").replace("\ue001", "{").replace("\ue002", "}")


def _syntax(place: str, line: int, rule: str) -> SettingsProblem:
    return SettingsProblem(place=place, line=line, rule=rule)


def timezone_in(file: Path) -> str | None:
    """Return the zone that a file names, None if it names none or cannot be read."""
    try:
        root = parsed(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeDecodeError, BadSettings):
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    for key, value in root.value:
        is_it = isinstance(key, yaml.ScalarNode) and key.value == "timezone"
        if is_it and isinstance(value, yaml.ScalarNode) and value.tag == TEXT:
            return value.value or None
    return None
