"""SQL as it is written, turned into what each database calls it."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

# Quoted text, comments and casts are skipped; what is left with a colon is a parameter.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | ::
      | \b(?P<not>NOT\s+)?IN\s+:(?P<list>[A-Za-z_]\w*)
      | :(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_JSON_LIST = "IN (SELECT value FROM json_each(:name))"


@dataclass(frozen=True)
class Statement:
    """One statement in the words of one database."""

    sql: str
    names: tuple[str, ...]  # in the order of their numbers
    lists: frozenset[str]  # those of them that stand for a list


def for_sqlite(sql: str, ones: Collection[str] = ()) -> Statement:
    """Keep the names; a list is passed as JSON, or as its only value if it is one of `ones`."""
    names: dict[str, int] = {}
    lists: set[str] = set()

    def replace(token: re.Match[str]) -> str:
        if (name := token["list"]) is not None:
            names.setdefault(name, len(names) + 1)
            lists.add(name)
            listed = f"IN (:{name})" if name in ones else _JSON_LIST.replace("name", name)
            return (token["not"] or "") + listed
        if (name := token["name"]) is not None:
            names.setdefault(name, len(names) + 1)
        return token[0]

    return Statement(_TOKENS.sub(replace, sql), tuple(names), frozenset(lists))


def for_postgres(sql: str) -> Statement:
    """Number the names; a list is passed as an array."""
    names: dict[str, int] = {}
    lists: set[str] = set()

    def replace(token: re.Match[str]) -> str:
        if (name := token["list"]) is not None:
            lists.add(name)
            number = names.setdefault(name, len(names) + 1)
            return f"<> ALL(${number})" if token["not"] else f"= ANY(${number})"
        if (name := token["name"]) is not None:
            return f"${names.setdefault(name, len(names) + 1)}"
        return token[0]

    return Statement(_TOKENS.sub(replace, sql), tuple(names), frozenset(lists))


class Statements(dict[str, Statement]):
    """Every statement seen so far; the number of different texts is small."""

    def __init__(self, translate: Callable[[str], Statement]) -> None:
        super().__init__()
        self._translate = translate

    def __missing__(self, sql: str) -> Statement:
        statement = self[sql] = self._translate(sql)
        return statement


class ListStatements(dict[tuple[str, frozenset[str]], str]):
    """The texts for SQLite of statements with lists, by those lists that have one value.

    Most lists have, unless much happens at once: to compare with a value takes a third of what it
    takes to read JSON.
    """

    def __missing__(self, key: tuple[str, frozenset[str]]) -> str:
        text = self[key] = for_sqlite(*key).sql
        return text


def unstorable(params: Mapping[str, object], *, nul: bool) -> tuple[str, str] | None:
    """Name the first parameter that no database can hold, and the rule it breaks."""
    for name, value in params.items():
        items: Iterable[object] = (
            cast("list[object]", value) if isinstance(value, list) else [value]
        )
        for item in items:
            if (rule := _broken_rule(item, nul=nul)) is not None:
                return name, rule
    return None


def _broken_rule(value: object, *, nul: bool) -> str | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "must fit into 64 bits"
    if isinstance(value, str):
        if nul and "\0" in value:
            return "must not contain NUL"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "must not contain lone surrogates"
    return None
