"""Reading a tree of nodes by types, so that whatever does not fit is told with its line."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import yaml
from msgspec import inspect

from wakeful.settings import text
from wakeful.settings.keys import key_of, out_of_bounds
from wakeful.settings.problems import SettingsProblem

_NOTHING: Any = object()  # a node that cannot be used, or that says nothing
_WITH_SECRETS = ("outbound.", "hooks.", "mcp_servers.", "providers.")  # known to the server alone
_WORDS = {
    text.TEXT: "text",
    text.NULL: "nothing",
    text.BOOL: "true or false",
    text.INT: "a whole number",
    text.FLOAT: "a number",
}


class Reading:
    """One reading of one file: values, and the problems met on the way."""

    def __init__(
        self, place: str, environ: Mapping[str, str], *, needs_secrets: bool = True
    ) -> None:
        self.problems: list[SettingsProblem] = []
        self._place = place
        self._environ = environ
        self._needs_secrets = needs_secrets
        self._lines: dict[str, int] = {}

    def read(self, root: yaml.Node | None, kind: inspect.StructType) -> dict[str, Any]:
        """Return plain values that fit `kind`, as far as they do."""
        if root is None or _says_nothing(root):
            return {}
        self._lines[""] = text.line_of(root)
        value = self._value(root, kind, "")
        return {} if value is _NOTHING else value

    def line_of(self, path: str) -> int | None:
        """Return where a key stands, or the nearest one around it."""
        while path not in self._lines and path:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self._lines.get(path)

    def complain(self, path: str, rule: str) -> Any:
        problem = SettingsProblem(place=self._place, line=self.line_of(path), key=path, rule=rule)
        if problem not in self.problems:
            self.problems.append(problem)
        return _NOTHING

    def _value(self, node: yaml.Node, kind: inspect.Type, path: str) -> Any:
        if text.is_tagged(node):
            return self.complain(path, "must be written without a YAML tag")
        kinds = _kinds(kind)
        lists = [one for one in kinds if isinstance(one, inspect.VarTupleType)]
        if lists and isinstance(node, yaml.SequenceNode):
            return self._list(node, lists[0].item_type, path)
        structs = [one for one in kinds if isinstance(one, inspect.StructType)]
        if structs and isinstance(node, yaml.MappingNode):
            return self._struct(node, structs[0], path)
        if len(kinds) > 1:
            return self._scalar(node, kinds, path)
        kind = kinds[0]
        match kind:
            case inspect.StructType():
                return self._struct(node, kind, path)
            case inspect.DictType():
                return self._dict(node, kind, path)
            case inspect.VarTupleType():
                return self._list(node, kind.item_type, path)
            case _:
                return self._scalar(node, (kind,), path)

    def _struct(self, node: yaml.Node, kind: inspect.StructType, path: str) -> Any:
        fields = {field.name: field for field in kind.fields}
        found: dict[str, Any] = {}
        pairs = self._pairs(node, path)
        if pairs is None:
            return _NOTHING
        for name, child in pairs.items():
            at = f"{path}.{name}" if path else name
            if name not in fields:
                self.complain(at, _unknown(name, list(fields)))
                continue
            value = self._of_key(child, fields[name].type, at)
            if value is not _NOTHING:
                found[name] = value
        for name, field in fields.items():
            if field.required and name not in found and name not in pairs:
                self.complain(path, f"needs the key {name!r}")
        return found

    def _of_key(self, node: yaml.Node, kind: inspect.Type, path: str) -> Any:
        """Return what a key says: a bare one nothing, `null` that there is none or no limit."""
        if not _says_nothing(node):
            return self._value(node, kind, path)
        is_bare = not node.value
        return _NOTHING if is_bare or not _may_be_none(kind) else None

    def _dict(self, node: yaml.Node, kind: inspect.DictType, path: str) -> Any:
        pairs = self._pairs(node, path)
        if pairs is None:
            return _NOTHING
        found: dict[str, Any] = {}
        for name, child in pairs.items():
            at = f"{path}.{name}"
            is_bare = _says_nothing(child) and isinstance(kind.value_type, inspect.StructType)
            value: Any = {} if is_bare else self._value(child, kind.value_type, at)
            if value is not _NOTHING:
                found[name] = value
        return found

    def _list(self, node: yaml.Node, item_type: inspect.Type, path: str) -> Any:
        if not isinstance(node, yaml.SequenceNode):
            return self.complain(path, f"must be a list, not {_name(node)}")
        found: list[Any] = []
        for position, child in enumerate(node.value):
            at = f"{path}[{position}]"
            self._lines[at] = text.line_of(child)
            value = self._value(child, item_type, at)
            if value is not _NOTHING:
                found.append(value)
        return found

    def _pairs(self, node: yaml.Node, path: str) -> dict[str, yaml.Node] | None:
        if not isinstance(node, yaml.MappingNode):
            self.complain(path, f"must be keys and values, not {_name(node)}")
            return None
        pairs: dict[str, yaml.Node] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode) or text.is_tagged(key):
                self.complain(path, "must have plain words as keys")
                continue
            name = text.shown(key.value)
            at = f"{path}.{name}" if path else name
            if name in pairs:
                first = self._lines[at]
                self._lines[at] = text.line_of(key)
                self.complain(at, f"is given twice (first in line {first})")
                continue
            self._lines[at] = text.line_of(key)
            pairs[name] = child
        return pairs

    def _scalar(self, node: yaml.Node, kinds: Sequence[inspect.Type], path: str) -> Any:
        key = key_of(path)
        wanted = (None if key is None else key.wants) or " or ".join(map(_wanted, kinds))
        if not isinstance(node, yaml.ScalarNode):
            return self.complain(path, f"must be {wanted}, not {_name(node)}")
        try:
            said = text.expanded(node, self._environ)
        except KeyError as missing:
            name = missing.args[0]
            if path.startswith(_WITH_SECRETS) and not self._needs_secrets:
                return text.shown(node.value)
            return self.complain(path, f"${{{name}}} is not set in the environment")
        tag = text.tag_of(node, said)
        is_hidden = text.is_reference(node) or _is_secret(path)
        if isinstance(kinds[0], inspect.StrType) and text.is_reference(node):
            tag = text.TEXT  # a secret may well look like a number
        fitting = (_converted(said, tag, kind) for kind in kinds)
        value = next((value for value in fitting if value is not _NOTHING), _NOTHING)
        if value is _NOTHING:
            found = _WORDS[tag] if is_hidden else f"{_WORDS[tag]} {said[:60]!r}"
            return self.complain(path, f"must be {wanted}, not {found}")
        if (rule := out_of_bounds(path, value)) is not None:
            return self.complain(path, rule)
        return value


def _kinds(kind: inspect.Type) -> Sequence[inspect.Type]:
    """Return the types that a value may have, nothing aside."""
    parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return [part for part in parts if not isinstance(part, inspect.NoneType)]


def _may_be_none(kind: inspect.Type) -> bool:
    parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return any(isinstance(part, inspect.NoneType) for part in parts)


def _converted(said: str, tag: str, kind: inspect.Type) -> Any:
    match kind:
        case inspect.StrType() if tag == text.TEXT:
            return said
        case inspect.IntType() if tag == text.INT and len(said) < 20:
            return int(said)
        case inspect.FloatType() if tag in (text.INT, text.FLOAT) and len(said) < 40:
            return float(said)
        case inspect.BoolType() if tag == text.BOOL:
            return said.lower() == "true"
        case inspect.EnumType() if tag == text.TEXT and said in [one.value for one in kind.cls]:
            return said
        case inspect.LiteralType() if tag == text.TEXT and said in kind.values:
            return said
        case _:
            return _NOTHING


def _wanted(kind: inspect.Type) -> str:
    match kind:
        case inspect.EnumType():
            return "one of " + ", ".join(str(member.value) for member in kind.cls)
        case inspect.LiteralType():
            return "one of " + ", ".join(map(str, kind.values))
        case inspect.IntType():
            return _WORDS[text.INT]
        case inspect.FloatType():
            return _WORDS[text.FLOAT]
        case inspect.BoolType():
            return _WORDS[text.BOOL]
        case inspect.VarTupleType():
            return "a list"
        case inspect.StructType():
            return "keys and values"
        case _:
            return _WORDS[text.TEXT]


def _name(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return _WORDS.get(node.tag, "something else")


def _unknown(name: str, valid: list[str]) -> str:
    near = get_close_matches(name, valid, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"unknown key{hint} valid: {', '.join(valid)}"


def _says_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.tag == text.NULL


def _is_secret(path: str) -> bool:
    key = key_of(path)
    return key is not None and key.is_secret
