"""The CPU of an item that is left in the inbox, beside that of a plain message.

Neither opens a turn: the messages are not due before tomorrow, the items wait to be read.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.crowd import PROMPT, names
from bench.figures import Figure, Sense
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.testing.kit import operator_draft
from wakeful.turn.agent import Agent
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.session_key import activity, canonical
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, Trust, WaitingCaps

CALLERS = 100
EACH = 20
ROUNDS = 9  # fewer than the messages that may wait in one session
MOST = 1.2  # times the CPU of a message
DAY_MS = 86_400_000
CAPS = WaitingCaps(of_source=1_000_000, in_all=1_000_000)
SESSIONS = [canonical(name) for name in names("message", CALLERS * EACH)]
ITEM = Draft(
    session_key=activity("main"),
    trust=Trust.EXTERNAL,
    owner=OPERATOR,
    text=PROMPT,
    kind=Kind.INBOX,
    priority=Priority.NEXT,
    source="backup",
    caps=CAPS,
)

DraftOf = Callable[[int], Draft]


def measure(folder: Path) -> list[Figure]:
    return asyncio.run(_measure(folder))


def load(folder: Path) -> None:
    asyncio.run(_load(folder))


async def _measure(folder: Path) -> list[Figure]:
    messages: list[float] = []
    items: list[float] = []
    async with _runtime(folder) as runtime:
        await _round(runtime, _message(runtime))  # makes the sessions
        await _round(runtime, lambda _: ITEM)
        for _ in range(ROUNDS):
            messages.append(await _round(runtime, _message(runtime)))
            items.append(await _round(runtime, lambda _: ITEM))
    plain = median(messages) * 1000
    return [
        Figure(
            name="inbox",
            value=median(items) * 1000,
            unit="ms",
            floor=plain,
            floor_is="CPU of a message that is not due",
            sense=Sense.AT_MOST,
            goal=MOST * plain,
        )
    ]


async def _load(folder: Path) -> None:
    async with _runtime(folder) as runtime:
        for _ in range(ROUNDS):
            await _round(runtime, lambda _: ITEM)


def _runtime(folder: Path) -> Runtime:
    return Runtime(agents=[Agent(model=Scripted([]))], home=folder / "home")


def _message(runtime: Runtime) -> DraftOf:
    not_before = runtime.clock.now() + DAY_MS
    return lambda number: operator_draft(SESSIONS[number], text=PROMPT, not_before=not_before)


async def _round(runtime: Runtime, draft_of: DraftOf) -> float:
    """Have every caller leave its drafts, one after the other; return the CPU of each."""
    before = time.process_time()
    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            group.create_task(_leave(runtime, draft_of, range(caller * EACH, (caller + 1) * EACH)))
    return (time.process_time() - before) / (CALLERS * EACH)


async def _leave(runtime: Runtime, draft_of: DraftOf, numbers: range) -> None:
    for number in numbers:
        await runtime.accept(draft_of(number))
