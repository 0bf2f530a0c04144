"""Numbered migrations, and which schemas this binary may open.

A file is named `NNNN_name.sql`, or `NNNN_name.sqlite.sql` beside `NNNN_name.postgres.sql` where
the databases must differ. A line `-- min_binary: N` says which binaries may still open the
database once the migration has run; without it, those that could before.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

import apsw

from wakeful.store.database import Row
from wakeful.vocabulary.errors import Invariant, StoreRefused

BINARY_VERSION = 4  # raised by one with each migration that older binaries could not live with

CREATE_SCHEMA = "CREATE TABLE schema (version BIGINT NOT NULL, min_binary BIGINT NOT NULL)"
_INSERT_SCHEMA = "INSERT INTO schema (version, min_binary) VALUES ({:d}, {:d})"

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)(\.(?P<dialect>sqlite|postgres))?\.sql")
_MIN_BINARY = re.compile(r"^-- min_binary: (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Migration:
    """One step from a schema to the next."""

    number: int
    name: str
    sql: str
    dialect: str | None = None  # None: the same text for every database

    @property
    def min_binary(self) -> int:
        found = _MIN_BINARY.search(self.sql)
        return int(found[1]) if found else 1

    def statements(self) -> list[str]:
        """Split at the semicolons that end a statement, not at those inside of one."""
        statements: list[str] = []
        rest = ""
        *pieces, tail = self.sql.split(";")
        for piece in pieces:
            rest += piece + ";"
            if apsw.complete(rest):
                statements.append(rest.strip())
                rest = ""
        if not all(
            line.lstrip().startswith("--") for line in (rest + tail).split("\n") if line.strip()
        ):
            raise Invariant(f"migration {self.number} ends inside a statement")
        return statements


def packaged() -> Sequence[Migration]:
    """Return the migrations that ship with this binary, in order."""
    found: list[Migration] = []
    for file in resources.files("wakeful.store").joinpath("migrations").iterdir():
        if (match := _FILE.fullmatch(file.name)) is not None:
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(int(match["number"]), match["name"], sql, match["dialect"]))
    return sorted(found, key=lambda migration: migration.number)


def migrate(
    execute: Callable[[str], Iterable[Row]],
    migrations: Sequence[Migration],
    dialect: str,
    *,
    has_schema: bool,
) -> None:
    """Bring the database up to date, inside a transaction that the caller commits.

    Refuse a database whose schema does not allow this binary; accept a newer one that does.
    """
    if not has_schema:
        execute(CREATE_SCHEMA)
        execute(_INSERT_SCHEMA.format(0, 1))
    version, min_binary = next(iter(execute("SELECT version, min_binary FROM schema")))
    refuse_unknown(version, min_binary)
    steps = _pending(migrations, dialect, version)
    for step in steps:
        for statement in step.statements():
            execute(statement)
        version, min_binary = step.number, max(min_binary, step.min_binary)
    if steps:
        execute("DELETE FROM schema")
        execute(_INSERT_SCHEMA.format(version, min_binary))


def refuse_unknown(version: int, min_binary: int) -> None:
    """Raise unless this binary may use a database of that schema."""
    if min_binary > BINARY_VERSION:
        raise StoreRefused(
            f"the database has schema {version}, which needs a binary of version {min_binary} "
            f"or newer; this one is {BINARY_VERSION}: install a newer release"
        )


def _pending(migrations: Sequence[Migration], dialect: str, version: int) -> list[Migration]:
    usable = [step for step in migrations if step.dialect in (None, dialect)]
    numbers = [step.number for step in usable]
    if numbers != list(range(1, len(numbers) + 1)):
        raise Invariant(f"migrations must be numbered 1, 2, 3, … for {dialect}: {numbers}")
    return usable[version:]
