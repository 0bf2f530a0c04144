"""Schemas of tools as providers want them: without titles, and closed where they are whole."""

from collections.abc import Mapping
from typing import Any, cast

_DROPPED = ("title", "$schema", "discriminator")
_UNSTRICT = frozenset(
    {
        *("default", "oneOf", "patternProperties", "unevaluatedProperties", "propertyNames"),
        *("minProperties", "maxProperties", "unevaluatedItems", "contains", "minContains"),
        *("maxContains", "uniqueItems"),
    }
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_TYPED = ("type", "$ref", "anyOf", "allOf", "enum", "const")
_NAMED = ("properties", "$defs", "definitions")  # whose keys are names, not words of the language

Schema = dict[str, Any]


def cleaned(schema: Mapping[str, Any]) -> Schema:
    """Return a schema without what a model does not need to know."""
    return _mapped(schema, closes=False)


def closed(schema: Mapping[str, Any]) -> Schema:
    """Return a schema whose objects have no other fields, unless they say that they do."""
    return _mapped(schema, closes=True)


def is_strict(schema: Any) -> bool:
    """Tell whether a provider can hold a model to a schema: all is required, nothing left open."""
    if not isinstance(schema, dict):
        return True
    node = cast("Schema", schema)
    if not _UNSTRICT.isdisjoint(node) or node.get("format", "date") not in _FORMATS:
        return False
    pattern: Any = node.get("pattern", "")
    if "(?=" in pattern or "(?!" in pattern or "(?<" in pattern:
        return False
    if node.get("type") == "object" and not _is_whole(node):
        return False
    if node.get("type") == "array" and not _has_typed_items(node):
        return False
    return all(is_strict(one) for one in _below(node))


def _is_whole(node: Schema) -> bool:
    if node.get("additionalProperties") not in (None, False) or "required" not in node:
        return False
    return set(node.get("properties", {})) <= set(node["required"])


def _has_typed_items(node: Schema) -> bool:
    items: Any = node.get("items")
    return isinstance(items, dict) and any(key in items for key in _TYPED)


def _below(node: Schema) -> list[Any]:
    found: list[Any] = []
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            found += cast("Schema", value).values()
        elif key in ("items", "anyOf", "allOf", "not", "prefixItems"):
            found += cast("list[Any]", value) if isinstance(value, list) else [value]
    return found


def _mapped(schema: Any, *, closes: bool) -> Any:
    if isinstance(schema, list):
        return [_mapped(one, closes=closes) for one in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    node: Schema = {}
    for key, value in cast("Mapping[str, Any]", schema).items():
        if key in _DROPPED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            names = cast("Mapping[str, Any]", value)
            node[key] = {name: _mapped(one, closes=closes) for name, one in names.items()}
        elif key in ("enum", "const", "default", "examples", "required"):
            node[key] = value
        else:
            node[key] = _mapped(value, closes=closes)
    if closes and node.get("type") == "object":
        node.setdefault("properties", {})
        node.setdefault("additionalProperties", False)
    return node
