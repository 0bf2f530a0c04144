"""Quiet that one node ends while another puts something off: nothing is left behind."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.conformance.engine.test_halts_on_two_nodes import Held, done_or_waiting
from tests.conformance.engine.test_two_nodes import MAIN, Node, column
from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.store.database import Tx
from wakeful.store.postgres import open_postgres
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.triggers.quieting import Quieting, timer_id
from wakeful.vocabulary.agent import AgentConfig, Agents
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Receipt, Trust

AGENTS = Agents({"main": AgentConfig(id="main")})
LATER = Draft(
    session_key=MAIN, text="ping", kind=Kind.WEBHOOK, trust=Trust.EXTERNAL, owner=OPERATOR
)


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


def quieting_of(node: Node) -> Quieting:
    return Quieting(
        node.deps.gate.quiet,
        AGENTS,
        node.bus,
        SystemClock(),
        node.intake.keep_in,
        lambda _tx, _agent_id, _reason, _limit: 0,  # nobody sleeps here
    )


async def begin(node: Node) -> None:
    quieting, until = quieting_of(node), SystemClock().now() + 3_600_000
    await node.store.transact(
        lambda tx: quieting.begin(tx, "main", until), locks=quieting.locks("main")
    )


async def end(node: Node) -> bool:
    quieting = quieting_of(node)
    return await node.store.transact(
        lambda tx: quieting.end(tx, "main"), locks=quieting.locks("main")
    )


async def fire(node: Node) -> None:
    """Fire the timer of the end, as a timekeeper does."""
    quieting = quieting_of(node)

    def write(tx: Tx) -> None:
        timer = timers.get(tx, timer_id("main"))
        assert timer is not None
        quieting.fire(tx, [Due(taken, None) for taken in timers.take(tx, [timer]).values()])

    await node.store.transact(write, locks=[lane_rows.lock(MAIN), halts.ASKING])


async def test_an_end_by_hand_waits_for_whoever_is_putting_something_off(
    nodes: tuple[Node, Node],
):
    first, second = nodes
    held = Held()
    await first.accept("hello")
    await begin(first)

    async with asyncio.TaskGroup() as group:
        parking: asyncio.Task[Sequence[Receipt]] = group.create_task(
            held.write(first, lambda tx: first.intake.accept_in(tx, [LATER]))
        )
        await held.decided()
        ending = group.create_task(end(second))
        was_acknowledged = await done_or_waiting(first, ending)
        held.let_go()
    await fire(second)
    states = await column(second, "SELECT state FROM stimuli WHERE kind = 'webhook'")

    assert [one.outcome for one in parking.result()] == [Outcome.PARKED]
    assert not was_acknowledged
    assert ending.result()
    assert states == ["pending"]
