"""The throttle counts and lets go alike on each database, over restarts and from two nodes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.integration.gate.unasked import (
    ANN,
    HOUR_S,
    MAIN,
    Hearer,
    deliveries,
    settled,
    speaking,
    unasked,
)
from tests.wake_gate import open_gate
from wakeful.bus.bus import Bus
from wakeful.gate import throttle
from wakeful.gate.throttle import Digests
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along, DeliveryState
from wakeful.store.database import Store, Tx
from wakeful.store.postgres import open_postgres
from wakeful.testing.kit import ManualClock
from wakeful.turns.turns import Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.agent import AgentConfig, ThrottleRules
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Priority, Trust

RULES = ThrottleRules(per_hour=5)
TURN = Turn(
    id="tn_1",
    session_key=MAIN,
    agent_id="main",
    transcript_id="tr_1",
    kind=Kind.TICK,
    priority=Priority.LATER,
    trust=Trust.OPERATOR,
    source="tick",
    route=ANN,
    root_id="st_1",
    depth=0,
    opened_by="st_1",
    config_hash="",
    state=TurnState.OPEN,
    phase=Phase.TOOLS,
    interrupt=Interrupt.NONE,
    is_preemptible=True,
    attempts=1,
    retries=0,
    step=1,
    tool_calls=0,
    used_ms=0,
    input_tokens=0,
    output_tokens=0,
    cost=0.0,
    reply=None,
    error_kind=None,
    error=None,
    opened_at=0,
    claimed_at=0,
    ended_at=None,
)


async def test_a_digest_leaves_once_whatever_stops_in_between(lasting: SettingsFor):
    clock, hearer = ManualClock(), Hearer()
    for text in ("one", "two", "three"):  # each in a life of its own
        async with speaking(hearer.take, clock, per_hour=1, settings=lasting()) as runtime:
            await unasked(runtime, text)
    clock.advance(HOUR_S)
    async with speaking(hearer.take, clock, per_hour=1, settings=lasting()) as runtime:
        await settled(runtime, 4)
    clock.advance(3 * HOUR_S)
    async with speaking(hearer.take, clock, per_hour=1, settings=lasting()) as runtime:
        await unasked(runtime, "four")
        await settled(runtime, 5)
        found = await deliveries(runtime)

    assert [len(text) > 5 for text in hearer.texts] == [False, True, False]
    assert (hearer.texts[0], hearer.texts[2]) == ("one", "four")
    assert {state for _, state in found} == {"acknowledged"}


async def test_what_is_held_is_counted_and_leaves(settings_for: SettingsFor):
    clock, hearer = ManualClock(), Hearer()
    async with speaking(hearer.take, clock, per_hour=1, settings=settings_for()) as runtime:
        for text in ("one", "two"):
            await unasked(runtime, text)
        agent = await runtime.services.views.agents.get("main")
        clock.advance(HOUR_S)
        await settled(runtime, 3)
        later = await runtime.services.views.agents.get("main")

    assert (agent.held.messages, later.held.messages) == (1, 0)
    assert hearer.texts == ["one", "two"]


class Node:
    """One node's way to the outbox."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.ids = Ids(clock)
        bus = Bus(store, self.ids)
        gate = open_gate(bus, self.ids, AgentConfig(id="main", throttle=RULES))
        self.bus = bus
        self.digests = Digests(bus, self.ids, gate.budgets)

    async def file(self) -> DeliveryState:
        def write(tx: Tx) -> DeliveryState:
            along = throttle.paced(tx, RULES, TURN, ANN.target, Along())
            filed = outbox.file(
                tx, self.ids.new("dl"), ANN, "hi", session_key=MAIN, turn_id="tn_1", along=along
            )
            return filed.state

        return await self.store.transact(write)

    async def make(self) -> None:
        await self.store.transact(lambda tx: self.digests.make(tx, ANN.target))


@pytest.fixture
async def nodes(migrated_url: str) -> AsyncIterator[tuple[ManualClock, list[Node]]]:
    clock = ManualClock()
    stores = [await open_postgres(migrated_url, clock=clock, exclusive=False) for _ in range(2)]
    found = [Node(store, clock) for store in stores]
    for node in found:
        await node.bus.start()
    yield clock, found
    for store in stores:
        await store.close()


async def test_two_nodes_count_together_and_make_one_digest(
    nodes: tuple[ManualClock, list[Node]],
):
    clock, pair = nodes
    for _ in range(5):
        clock.advance(HOUR_S + 1)
        before = await pair[0].store.read("SELECT COUNT(*) FROM deliveries WHERE parts > 0")
        filed = await asyncio.gather(*(node.file() for _ in range(10) for node in pair))
        clock.advance(HOUR_S)
        await asyncio.gather(*(node.make() for _ in range(3) for node in pair))
        after = await pair[0].store.read("SELECT COUNT(*) FROM deliveries WHERE parts > 0")

        assert filed.count(DeliveryState.QUEUED) == RULES.per_hour
        assert after[0][0] - before[0][0] == 1
    left = await pair[0].store.read("SELECT COUNT(*) FROM deliveries WHERE state = 'held'")
    assert left[0][0] == 0
