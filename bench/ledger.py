"""Big ledgers, made fast: rows that a real turn wrote, copied with other names."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import apsw

from bench.crowd import crowd

MODEL_SESSION = "agent:main:model"  # the session whose rows are copied


def prepare(home: Path) -> None:
    """Make a home in which one plain turn has run."""
    asyncio.run(_one_turn(home))


async def _one_turn(home: Path) -> None:
    async with crowd(home) as callers:
        await callers.turn(MODEL_SESSION)


class Ledger:
    """A database that nobody else has open."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._cursor: Any = connection.cursor()  # its types are not all known

    def run(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return list(self._cursor.execute(sql, params))

    def count(self, table: str) -> int:
        ((rows,),) = self.run(f"SELECT COUNT(*) FROM {table}")
        return rows

    def copy(self, table: str, count: int, where: str = "TRUE", **columns: Iterable[Any]) -> None:
        """Add `count` copies of the first row that `where` finds, with these columns instead.

        Columns should ascend: then every index grows at its end.
        """
        (row,) = self.run(f"SELECT * FROM {table} WHERE {where} LIMIT 1")
        fields = [name for name, *_ in self.run(f"SELECT name FROM pragma_table_info('{table}')")]
        values = [
            columns.get(field, repeat(value)) for field, value in zip(fields, row, strict=True)
        ]
        self.add(table, fields, islice(zip(*values, strict=False), count))

    def add(self, table: str, fields: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" for _ in fields)
        sql = f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({marks})"
        self._cursor.executemany(sql, rows)


@contextmanager
def opened(home: Path) -> Generator[Ledger]:
    """Open the ledger of a home that no runtime uses, for one big transaction."""
    connection = apsw.Connection(str(home / "wakeful.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    ledger = Ledger(connection)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
        ledger.run(f"PRAGMA {pragma}")
    ledger.run("BEGIN")
    yield ledger
    ledger.run("COMMIT")
    connection.close()
