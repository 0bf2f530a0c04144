"""Ten thousand sessions that wake at one instant, and one in which somebody talks meanwhile.

PostgreSQL runs as it does in tests, without fsync: what it is compared with does so, too.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from bench.crowd import ANSWER, ANY_AMOUNT, Crowd, crowd_with, names
from bench.figures import Figure, percentile
from bench.floors import ROW
from bench.sleepers import put_to_sleep
from tests import postgres_server
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.scripted import says
from wakeful.settings.settings import Settings
from wakeful.store import grouped, postgres
from wakeful.store.database import Store
from wakeful.turn.agent import Agent

SLEEPERS = 10_000
ROUNDS = 3
FILED_S = 5
BESIDE = 2  # times what the talker waits for while everybody sleeps
THINKING_S = 5.0  # of a model that was asked by one who woke
QUIET_S = 0.005  # between a turn's end and the talker's next words
ASLEEP_S = 20  # from the first one's falling asleep; idle turns are measured meanwhile
AWAKE_SOON_MS = 500
TALKER = "talker"
LOOK_S = 0.1

_LEFT = "SELECT 1 FROM timers WHERE kind = 'sleep' LIMIT 1"


@dataclass
class Samples:
    """What all rounds on one database took, in seconds."""

    filed: list[float] = field(default_factory=list[float])
    bare: list[float] = field(default_factory=list[float])
    idle: list[float] = field(default_factory=list[float])
    beside: list[float] = field(default_factory=list[float])


class Voice:
    """Answers the talker at once, and thinks for a while when a session woke by itself."""

    name = "voice"

    def __init__(self) -> None:
        self.asked_at = 0.0

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        if "<tick>" in str(request.messages[-1]):
            await asyncio.sleep(THINKING_S)
        else:
            self.asked_at = time.perf_counter()
        yield says(ANSWER)


def measure(folder: Path) -> list[Figure]:
    on_sqlite, on_postgres = Samples(), Samples()
    with postgres_server.databases() as databases:
        for number in range(ROUNDS):
            asyncio.run(_round(on_sqlite, home=folder / f"home{number}"))
            on_sqlite.bare.append(_bare_sqlite(folder / f"bare{number}.db"))
            name = databases.create(is_migrated=True)
            asyncio.run(_round(on_postgres, database=databases.url(name)))
            on_postgres.bare.append(asyncio.run(_bare_postgres(databases.url(name))))
            databases.drop(name)
    return [
        *_figures("", on_sqlite, grouped.YIELDING_ROWS),
        *_figures("_postgres", on_postgres, postgres.YIELDING_ROWS),
    ]


def load(folder: Path) -> None:
    asyncio.run(_round(Samples(), home=folder / "home"))


def _figures(suffix: str, samples: Samples, together: int) -> list[Figure]:
    idle = percentile(samples.idle, 99) * 1000
    return [
        Figure(
            name=f"waking.filed{suffix}",
            value=percentile(samples.filed, 50),
            unit="s",
            floor=percentile(samples.bare, 50),
            floor_is=f"{SLEEPERS} bare rows, {together} in a commit",
            goal=FILED_S,
        ),
        Figure(
            name=f"waking.beside{suffix}",
            value=percentile(samples.beside, 99) * 1000,
            unit="ms",
            floor=idle,
            floor_is="p99 of the same while all others sleep",
            goal=idle * BESIDE,
        ),
    ]


async def _round(samples: Samples, **place: Any) -> None:
    voice = Voice()
    settings = Settings(**place, drain_s=0.1)  # nobody waits at the end for those who woke
    async with crowd_with(Agent(model=voice, budget=ANY_AMOUNT), settings) as callers:
        store, clock = callers.runtime.store, callers.runtime.clock
        await callers.turn(TALKER)
        wake_at = clock.now() + ASLEEP_S * 1000
        await put_to_sleep(store, names("sleeper", SLEEPERS), wake_at)
        while clock.now() < wake_at - AWAKE_SOON_MS:
            samples.idle.append(await _talk(callers, voice))
        await asyncio.sleep((wake_at - clock.now()) / 1000)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            filing = group.create_task(_until_filed(store))
            while not filing.done():
                samples.beside.append(await _talk(callers, voice))
        samples.filed.append(filing.result() - started)


async def _until_filed(store: Store) -> float:
    """Return when the last one's wake was filed."""
    while await store.read(_LEFT):  # noqa: ASYNC110 - nobody tells when the last one is filed
        await asyncio.sleep(LOOK_S)
    return time.perf_counter()


async def _talk(callers: Crowd, voice: Voice) -> float:
    """Return how long it took from words to the model's being asked."""
    await asyncio.sleep(QUIET_S)
    started = time.perf_counter()
    await callers.turn(TALKER)
    return voice.asked_at - started


def _bare_sqlite(path: Path) -> float:
    connection = apsw.Connection(str(path))
    cursor: Any = connection.cursor()  # its types are not all known
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    started = time.perf_counter()
    for _ in range(SLEEPERS // grouped.YIELDING_ROWS):
        cursor.execute("BEGIN IMMEDIATE")
        cursor.executemany("INSERT INTO rows (text) VALUES (?)", [(ROW,)] * grouped.YIELDING_ROWS)
        cursor.execute("COMMIT")
    taken = time.perf_counter() - started
    connection.close()
    return taken


async def _bare_postgres(url: str) -> float:
    connection: Any = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE rows (id BIGSERIAL PRIMARY KEY, text TEXT)")
    started = time.perf_counter()
    for _ in range(SLEEPERS // postgres.YIELDING_ROWS):
        async with connection.transaction():
            await connection.executemany(
                "INSERT INTO rows (text) VALUES ($1)", [(ROW,)] * postgres.YIELDING_ROWS
            )
    taken = time.perf_counter() - started
    await connection.close()
    return taken
