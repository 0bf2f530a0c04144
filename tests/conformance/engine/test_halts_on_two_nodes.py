"""A halt on one node and a decision on another, at once: whichever commits first, both hold."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from tests.conformance.engine.test_two_nodes import MAIN, Node, column
from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.lanes.opening import Opened
from wakeful.store.database import Tx
from wakeful.store.postgres import open_postgres
from wakeful.testing.kit import operator_draft
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.stimulus import Receipt

PATIENCE_S = 10.0
WAITING_FOR_LOCKS = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)

T = TypeVar("T")


class Held:
    """A transaction that has decided, and waits with its commit until the test lets it go."""

    def __init__(self) -> None:
        self._decided = threading.Event()
        self._let_go = threading.Event()

    async def write(self, node: Node, decide: Callable[[Tx], T]) -> T:
        def hold(tx: Tx) -> T:
            decision = decide(tx)
            self._decided.set()
            assert self._let_go.wait(PATIENCE_S)
            return decision

        return await node.store.transact(hold, locks=[lane_rows.lock(MAIN), halts.ASKING])

    async def decided(self) -> None:
        assert await asyncio.to_thread(self._decided.wait, PATIENCE_S)

    def let_go(self) -> None:
        self._let_go.set()


@pytest.fixture
async def nodes(migrated_url: str) -> AsyncIterator[tuple[Node, Node]]:
    clock = SystemClock()
    stores = [await open_postgres(migrated_url, clock=clock, exclusive=False) for _ in range(2)]
    pair = Node(stores[0], "first"), Node(stores[1], "second")
    for node in pair:
        await node.bus.start()
    yield pair
    for store in stores:
        await store.close()


async def done_or_waiting(node: Node, task: asyncio.Task[bool]) -> bool:
    """Return whether a write is done, once it is, or once it waits for somebody's lock."""
    async with asyncio.timeout(PATIENCE_S):
        while not task.done() and not await column(node, WAITING_FOR_LOCKS):
            pass
    return task.done()


async def test_no_question_begins_after_a_halt_was_acknowledged(nodes: tuple[Node, Node]):
    first, second = nodes
    held = Held()
    await first.accept("hello")

    async with asyncio.TaskGroup() as group:
        opening: asyncio.Task[Opened | None] = group.create_task(
            held.write(first, lambda tx: first.opening.open_next(tx, MAIN))
        )
        await held.decided()
        halting = group.create_task(second.intake.halt("main"))
        was_acknowledged = await done_or_waiting(first, halting)
        held.let_go()

    assert opening.result() is not None
    assert not was_acknowledged
    assert halting.result()


async def test_what_is_accepted_while_a_halt_is_lifted_is_not_left_parked(
    nodes: tuple[Node, Node],
):
    first, second = nodes
    held = Held()
    await first.accept("before")
    await second.intake.halt("main")

    async with asyncio.TaskGroup() as group:
        draft = operator_draft(MAIN, text="meanwhile")
        accepting: asyncio.Task[list[Receipt]] = group.create_task(
            held.write(first, lambda tx: first.intake.accept_in(tx, [draft]))
        )
        await held.decided()
        resuming = group.create_task(second.intake.resume("main"))
        await done_or_waiting(first, resuming)
        held.let_go()

    found = await column(first, "SELECT state FROM stimuli ORDER BY id")
    assert accepting.result()[0].reason == "halted"
    assert resuming.result()
    assert found == ["pending", "pending"]
