"""Rows as structs: a table described once, by the fields of its row.

Text, integers, floats, bytes and string enumerations are stored as they are, a bool as 0 or 1,
everything else (structs, lists, dictionaries) as JSON text. None is NULL.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from wakeful.store.database import Row
from wakeful.vocabulary.errors import StoreDamaged

S = TypeVar("S", bound=msgspec.Struct)

Convert = Callable[[Any], Any]

_PLAIN = (
    inspect.StrType,
    inspect.IntType,
    inspect.FloatType,
    inspect.BytesType,
    inspect.LiteralType,
)
_json = msgspec.json.Encoder()


class Table(Generic[S]):
    """A table whose columns are the fields of a struct, in their order."""

    def __init__(self, name: str, row: type[S]) -> None:
        self.name = name
        self.row = row
        fields = msgspec.structs.fields(row)
        self.fields: tuple[str, ...] = tuple(field.name for field in fields)
        self.columns = ", ".join(self.fields)
        values = ", ".join(f":{field}" for field in self.fields)
        # Names of tables and fields are ours, never a caller's.
        self.insert = f"INSERT INTO {name} ({self.columns}) VALUES ({values})"  # noqa: S608
        self._is_positional = row.__match_args__ == self.fields
        self._to_db: list[tuple[str, Convert]] = []
        self._from_db: list[tuple[int, Convert]] = []
        for position, field in enumerate(fields):
            if (pair := _conversion(f"{name}.{field.name}", field.type)) is not None:
                self._to_db.append((field.name, pair[0]))
                self._from_db.append((position, pair[1]))

    def select(self, rest: str) -> str:
        """Return the SELECT of whole rows that `rest` (FROM aside) narrows and orders."""
        return f"SELECT {self.columns} FROM {self.name} {rest}"  # noqa: S608 (constants of ours)

    def params(self, row: S) -> dict[str, Any]:
        """Return the named parameters of `insert` for this row."""
        params = msgspec.structs.asdict(row)
        for name, convert in self._to_db:
            value = params[name]
            if value is not None:
                params[name] = convert(value)
        return params

    def read(self, db_row: Row) -> S:
        """Return the struct of a row that was selected by `columns`."""
        values = list(db_row)
        for position, convert in self._from_db:
            value = values[position]
            if value is not None:
                values[position] = convert(value)
        if self._is_positional:
            return self.row(*values)
        return self.row(**dict(zip(self.fields, values, strict=True)))


def _conversion(column: str, declared: Any) -> tuple[Convert, Convert] | None:
    """Return how a value goes into the database and comes back, or None if as it is."""
    kind = inspect.type_info(declared)
    if isinstance(kind, inspect.UnionType):
        inner = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        if len(inner) == 1:
            kind = inner[0]
    if isinstance(kind, inspect.BoolType):
        return int, bool
    if isinstance(kind, inspect.EnumType) and issubclass(kind.cls, str):
        return _value_of, _Members(column, kind.cls).__getitem__
    if isinstance(kind, inspect.EnumType) and issubclass(kind.cls, int):
        return int, kind.cls
    if isinstance(kind, _PLAIN):
        return None
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(declared)

    def decode(text: str) -> Any:
        try:
            return decoder.decode(text)
        except msgspec.DecodeError as error:
            raise StoreDamaged(f"{column}: stored JSON does not fit its type: {error}") from error

    return _encode, decode


def _encode(value: Any) -> str:
    return _json.encode(value).decode()


def _value_of(member: Any) -> Any:
    return member.value


class _Members(dict[str, Enum]):
    """The members of an enumeration by their stored text."""

    def __init__(self, column: str, members: type[Enum]) -> None:
        super().__init__((member.value, member) for member in members)
        self._column = column

    def __missing__(self, text: object) -> Enum:
        raise StoreDamaged(f"{self._column}: {text!r} is not a known value")
