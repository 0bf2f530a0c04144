"""Rows as structs: a table described once, by the fields of its row.

Text, integers, floats, bytes and string enumerations are stored as they are, a bool as 0 or 1,
everything else (structs, lists, dictionaries) as JSON text. None is NULL.
"""

import logging
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from wakeful.store.database import Row
from wakeful.vocabulary.errors import UnreadableRow

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

_UNREADABLE = (KeyError, TypeError, msgspec.MsgspecError)  # raised by how a value comes back

MOST_LOGGED = 1000  # rows of a table that the log names as left out, once each

log = logging.getLogger(__name__)


class RowTable(Generic[S]):
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
        self._selects: dict[str, str] = {}
        self._is_positional = row.__match_args__ == self.fields
        self._to_db: list[tuple[str, Convert]] = []
        self._from_db: list[tuple[int, Convert]] = []
        self._logged: set[object] = set()  # which rows the log has named as left out
        for position, field in enumerate(fields):
            if (pair := _conversion(field.type)) is not None:
                self._to_db.append((field.name, pair[0]))
                self._from_db.append((position, pair[1]))

    def select(self, rest: str) -> str:
        """Return the SELECT of whole rows that `rest` (FROM aside) narrows and orders."""
        sql = self._selects.get(rest)
        if sql is None:
            sql = f"SELECT {self.columns} FROM {self.name} {rest}"  # noqa: S608 (constants of ours)
            self._selects[rest] = sql  # the same object each time: its hash is known
        return sql

    def params(self, row: S) -> dict[str, Any]:
        """Return the named parameters of `insert` for this row."""
        params = msgspec.structs.asdict(row)
        for name, convert in self._to_db:
            value = params[name]
            if value is not None:
                params[name] = convert(value)
        return params

    def read(self, db_row: Row) -> S:
        """Return the struct of a row that was selected by `columns`.

        Raise UnreadableRow if a value means nothing to this release: that is one row's trouble,
        not the database's.
        """
        values = list(db_row)
        for position, convert in self._from_db:
            value = values[position]
            if value is not None:
                try:
                    values[position] = convert(value)
                except _UNREADABLE as error:
                    raise self._unreadable(db_row, position, error) from error
        return self._made(values)

    def read_known(self, db_rows: Iterable[Row]) -> list[S]:
        """Return the structs of rows that are only shown; one that cannot be read is left out."""
        found: list[S] = []
        for db_row in db_rows:
            try:
                found.append(self.read(db_row))
            except UnreadableRow as error:
                if len(self._logged) < MOST_LOGGED and db_row[0] not in self._logged:
                    self._logged.add(db_row[0])
                    log.warning("left out: %s", error)
        return found

    def read_partly(self, db_row: Row) -> S:
        """Return the struct with None in place of each value that cannot be read.

        Only for whoever must end or remove what the row stands for.
        """
        values = list(db_row)
        for position, convert in self._from_db:
            try:
                values[position] = None if values[position] is None else convert(values[position])
            except _UNREADABLE:
                values[position] = None
        return self._made(values)

    def _made(self, values: list[Any]) -> S:
        if self._is_positional:
            return self.row(*values)
        return self.row(**dict(zip(self.fields, values, strict=True)))

    def _unreadable(self, db_row: Row, position: int, error: Exception) -> UnreadableRow:
        what = f"{self.name}.{self.fields[position]} of {db_row[0]!r}"
        why = f"{error} is not a known value" if isinstance(error, KeyError) else str(error)
        return UnreadableRow(f"{what} cannot be read by this release: {why}")


def _conversion(declared: Any) -> tuple[Convert, Convert] | None:
    """Return how a value goes into the database and comes back, or None if as it is."""
    kind = inspect.type_info(declared)
    if isinstance(kind, inspect.UnionType):
        inner = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        if len(inner) == 1:
            kind = inner[0]
    if isinstance(kind, inspect.BoolType):
        return int, bool
    if isinstance(kind, inspect.EnumType) and issubclass(kind.cls, str):
        return _value_of, _members(kind.cls)
    if isinstance(kind, inspect.EnumType) and issubclass(kind.cls, int):
        return int, _members(kind.cls)
    if isinstance(kind, _PLAIN):
        return None
    return _encode, msgspec.json.Decoder(declared).decode


def _encode(value: Any) -> str:
    return _json.encode(value).decode()


def _value_of(member: Any) -> Any:
    return member.value


def _members(members: type[Enum]) -> Convert:
    """Return how a member of an enumeration is found by what is stored: ten times its call."""
    return {member.value: member for member in members}.__getitem__
