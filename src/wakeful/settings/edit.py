"""Changing one key in the text of a settings file, so that comments and order stay."""

from typing import Any, cast

import yaml

from wakeful.settings import text as yaml_text
from wakeful.vocabulary.errors import InvalidInput

LONGEST_LINE = 1_000_000  # a value stays on one line


def with_value(content: str, key: str, value: str, file: str = "the settings file") -> str:
    """Return the text with `key` (`agents.main.model`) set to a value, which is written as YAML.

    The result is only text: whoever writes it to a file must load it first.
    """
    names = key.split(".")
    if not all(names) or any(sign in key for sign in "[]{}:,#&*!|>'\"%@` \n\t"):
        raise InvalidInput("key", f"must be words with dots between them, not {key[:80]!r}")
    written = _one_line(value)
    root = yaml_text.parsed(content, file)
    if root is None or _is_empty(root):
        return _on_a_new_line(content, "", _nested(names, written))
    return _changed(content, root, names, written)


def _changed(content: str, node: yaml.Node, names: list[str], written: str) -> str:
    """Go down as far as the text does, then replace or add."""
    for depth, name in enumerate(names):
        if _is_empty(node):
            return _spliced(content, node, _flow(names[depth:], written))
        if not isinstance(node, yaml.MappingNode):
            raise InvalidInput("key", f"{'.'.join(names[:depth])} holds no keys in the file")
        found = _child(node, name)
        if found is None:
            pair = _nested(names[depth:], written)
            if depth == 0 and not node.flow_style:
                return _on_a_new_line(content, " " * node.start_mark.column, pair)
            return _added(content, node, pair)
        node = found
    return _spliced(content, node, written)


def _child(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
    return next(
        (child for key, child in pairs if isinstance(key, yaml.ScalarNode) and key.value == name),
        None,
    )


def _added(content: str, node: yaml.MappingNode, pair: str) -> str:
    if node.flow_style:
        end = node.end_mark.index - 1  # before the brace
        separator = ", " if node.value else ""
        return content[:end].rstrip() + separator + pair + content[end:]
    indent = " " * node.start_mark.column
    last = cast("yaml.Node", node.value[-1][1])
    end = _end_of(content, last)
    line_end = content.find("\n", end)
    at = len(content) if line_end < 0 else line_end + 1
    return _on_a_new_line(content[:at], indent, pair) + content[at:]


def _end_of(content: str, node: yaml.Node) -> int:
    """Return where a node's own text ends; a block ends with its last child, not with the next."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        node = cast("yaml.Node", last[1] if isinstance(last, tuple) else last)
    end = node.end_mark.index
    while end > node.start_mark.index and content[end - 1] in "\n ":
        end -= 1
    return end


def _spliced(content: str, node: yaml.Node, written: str) -> str:
    start, end = node.start_mark.index, _end_of(content, node)
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        raise InvalidInput("key", "holds several keys or items: name one of them, or edit the file")
    space = " " if start > 0 and content[start - 1] == ":" else ""
    return content[:start] + space + written + content[max(start, end) :]


def _on_a_new_line(before: str, indent: str, pair: str) -> str:
    newline = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{newline}{indent}{pair}\n"


def _nested(names: list[str], written: str) -> str:
    head, *rest = names
    return f"{head}: {_flow(rest, written)}"


def _flow(names: list[str], written: str) -> str:
    for name in reversed(names):
        written = f"{{{name}: {written}}}"
    return written


def _one_line(value: str) -> str:
    """Return a value as YAML on one line; what is no YAML is text."""
    if "${" in value:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    try:
        plain = yaml.load(value, yaml_text.Resolver)
    except (yaml.YAMLError, ValueError, RecursionError):
        plain = value
    try:
        dumped = yaml.safe_dump(
            plain, default_flow_style=True, width=LONGEST_LINE, allow_unicode=True
        )
    except yaml.YAMLError:
        raise InvalidInput("value", "cannot be written as YAML") from None
    return dumped.removesuffix("...\n").strip()


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.tag == yaml_text.NULL
