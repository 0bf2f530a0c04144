"""Tables, verbs and ways of grouping that the store's promises are tested with."""

import asyncio
import threading
from collections.abc import Awaitable, Sequence
from typing import Any

from wakeful.store.database import Lock, LockSpace, Store, Tx, Verb
from wakeful.store.migrations import Migration

WAIT_S = 10.0  # for something that another thread is about to do

TABLES = Migration(
    1,
    "tables",
    """
    CREATE TABLE notes (id TEXT PRIMARY KEY, value BIGINT, body TEXT);
    CREATE TABLE counters (key TEXT PRIMARY KEY, value BIGINT NOT NULL);
    CREATE TABLE head (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL);
    CREATE TABLE events (seq BIGINT PRIMARY KEY, body TEXT NOT NULL);
    INSERT INTO head (id, seq) VALUES (1, 0);
    """,
)

COUNTERS = LockSpace(
    name="counters",
    rank=2,
    lock="SELECT key FROM counters WHERE key IN :keys ORDER BY key FOR UPDATE",
    ensure="INSERT INTO counters (key, value) VALUES (:key, 0) ON CONFLICT DO NOTHING",
)
HEAD = LockSpace(
    name="head", rank=9, lock="SELECT id FROM head WHERE CAST(id AS TEXT) IN :keys FOR UPDATE"
)

INSERT_NOTE = "INSERT INTO notes (id, value, body) VALUES (:id, :value, :body)"
SLOW = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def add_note(tx: Tx, name: str, value: int = 0, body: str = "") -> str:
    tx.run(INSERT_NOTE, id=name, value=value, body=body)
    return name


def _publish(tx: Tx, bodies: Sequence[str]) -> Sequence[int]:
    found = tx.one("SELECT seq FROM head WHERE id = 1")
    assert found is not None
    first: int = found[0] + 1
    numbers = range(first, first + len(bodies))
    tx.run("UPDATE head SET seq = :seq WHERE id = 1", seq=numbers[-1])
    tx.many(
        "INSERT INTO events (seq, body) VALUES (:seq, :body)",
        [{"seq": seq, "body": body} for seq, body in zip(numbers, bodies, strict=True)],
    )
    return numbers


PUBLISH: Verb[str, int] = Verb("publish", _publish, locks=lambda _: [Lock(HEAD, "1")], rank=9)


def add_notes(tx: Tx, names: Sequence[str]) -> Sequence[str]:
    tx.many(INSERT_NOTE, [{"id": name, "value": len(names), "body": ""} for name in names])
    return [f"did {name}" for name in names]


ADD_NOTES: Verb[str, str] = Verb("add notes", add_notes)


async def names_of(store: Store) -> list[str]:
    return [row[0] for row in await store.read("SELECT id FROM notes ORDER BY id")]


class Hold:
    """A write that keeps the writer busy until it is let go."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._leave = threading.Event()

    def __call__(self, tx: Tx) -> None:
        self._entered.set()
        assert self._leave.wait(WAIT_S)

    async def entered(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, WAIT_S)

    def let_go(self) -> None:
        self._leave.set()


async def together(store: Store, *calls: Awaitable[Any]) -> list[Any]:
    """Run calls as one group; return results and exceptions in order."""
    hold = Hold()

    async def release() -> None:  # starts last, when every call above it has been queued
        hold.let_go()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(hold))
        await hold.entered()
        *results, _ = await asyncio.gather(*calls, release(), return_exceptions=True)
    return results
