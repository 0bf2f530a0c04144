"""How late timers are while turns run."""

import asyncio
from pathlib import Path

import msgspec

from bench.crowd import Crowd, crowd, names
from bench.figures import Figure, percentile
from bench.floors import PlainCommits
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.session_key import canonical
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, Trust

TIMERS = 200
EVERY_MS = 50
FIRST_IN_MS = 1_000
TALKERS = 4  # that talk all the time
PAUSE_S = 0.05  # between a turn's end and the next words
LATE_MS = 20


def measure(folder: Path) -> list[Figure]:
    with PlainCommits(folder) as commits:
        before = commits.commits(TIMERS)
        late = asyncio.run(_late(folder / "home"))
        plain = before + commits.commits(TIMERS)
    return [
        Figure(
            name="late.p99",
            value=percentile(late, 99),
            unit="ms",
            floor=percentile(plain, 99) * 1000,
            floor_is="p99 of one commit",
            goal=LATE_MS,
        )
    ]


def load(folder: Path) -> None:
    asyncio.run(_late(folder / "home"))


async def _late(home: Path) -> list[float]:
    """Return by how many milliseconds each timer was late when its stimulus was on disk."""
    async with crowd(home) as callers:
        sessions = names("talker", TALKERS)
        await callers.turns([*sessions, "due"], 1)
        async with asyncio.TaskGroup() as group:
            talking = [group.create_task(_talk(callers, session)) for session in sessions]
            late = await _fired(callers)
            for task in talking:
                task.cancel()
        return late


async def _talk(callers: Crowd, session: str) -> None:
    while True:
        await callers.turn(session)
        await asyncio.sleep(PAUSE_S)


async def _fired(callers: Crowd) -> list[float]:
    clock = callers.runtime.clock
    fired = callers.runtime.subscribe(topics=["timer.fired"])
    first = clock.now() + FIRST_IN_MS
    due = [_timer(number, first + number * EVERY_MS) for number in range(TIMERS)]
    await callers.runtime.store.transact(lambda tx: timers.put(tx, *due))
    late: list[float] = []
    async for event in fired:
        late.append(clock.now() - int(str(event.data["due_at"])))
        if len(late) == TIMERS:
            break
    return late


def _timer(number: int, due_at: int) -> Timer:
    draft = Draft(
        session_key=canonical("due"),
        text="It is time.",
        kind=Kind.SYSTEM_EVENT,
        priority=Priority.LATER,
        trust=Trust.OPERATOR,
        owner=OPERATOR,
        source="bench",
    )
    payload = msgspec.json.encode(draft).decode()
    return Timer(
        id=f"late {number:04}",
        due_at=due_at,
        kind="stimulus",
        target=draft.session_key,
        payload=payload,
    )
