"""Twenty lanes for the last of the money: the cap holds, on every database and over two nodes."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.wake_gate import open_gate
from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows
from wakeful.gate.budget_rows import AGENT, BudgetRow
from wakeful.gate.budgets import BudgetRefusal, Budgets, Payer, PricedQuestion
from wakeful.models.prices import Price, Rate
from wakeful.models.tariffs import Tariff
from wakeful.store.database import Store, Tx
from wakeful.store.opening import open_store
from wakeful.store.postgres import open_postgres
from wakeful.turns.asks import Reserved, SettledAsk
from wakeful.vocabulary.agent import AgentConfig
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Origin

ROUNDS = 200
ROUNDS_OF_NODES = 25  # each takes the disk and the network
LANES = 20
CAP = 100_000_000  # 0.10 dollars, in billionths
DAY_S = 86_400
CONFIG = AgentConfig(id="main", budget=BudgetRules(money_per_day=0.1))
TARIFF = Tariff(price=Price(output=Rate(base=10.0)), max_output=3_000)  # 0.03 for an answer
PAYER = Payer(agent_id="main", origin=Origin.USER, source="operator", for_people=True)
QUESTION = PricedQuestion(tariffs=[TARIFF], read=0)


class Purse:
    """One node's way to the money."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.bus = Bus(store, Ids(clock))
        self.budgets: Budgets = open_gate(self.bus, Ids(clock), CONFIG).budgets

    async def ask(self, cost: int | None) -> Reserved | BudgetRefusal:
        """Set money aside and, unless the lane dies meanwhile, settle it."""
        lock = budget_rows.lock("main")
        found = await self.store.transact(
            lambda tx: self.budgets.reserve(tx, PAYER, QUESTION), locks=[lock]
        )
        if isinstance(found, Reserved) and cost is not None:
            paid = SettledAsk(reserved=found, cost=min(cost, found.reserved))
            await self.store.transact(
                lambda tx: self.budgets.settle(tx, "main", paid), locks=[lock]
            )
        return found

    async def row(self) -> BudgetRow:
        def read(tx: Tx) -> BudgetRow:
            return self.budgets.today(tx, "main", [AGENT])[AGENT]

        return await self.store.transact(read)


@pytest.fixture(params=["memory", "two nodes"])
def address(request: pytest.FixtureRequest) -> str | None:
    if request.param == "memory":
        return None
    url: str = request.getfixturevalue("migrated_url")
    return url


@pytest.fixture
async def purses(address: str | None) -> AsyncIterator[tuple[ManualClock, Sequence[Purse]]]:
    clock = ManualClock()
    if address is None:
        stores = [await open_store(None, clock=clock)]
    else:
        stores = [await open_postgres(address, clock=clock, exclusive=False) for _ in range(2)]
    nodes = [Purse(store, clock) for store in stores]
    for node in nodes:
        await node.bus.start()
    yield clock, nodes
    for store in stores:
        await store.close()


async def test_f31_the_last_of_the_money_is_given_out_once(
    purses: tuple[ManualClock, Sequence[Purse]],
):
    """F31: lanes that reach the last unit together never get more than there is."""
    clock, nodes = purses
    for number in range(ROUNDS if len(nodes) == 1 else ROUNDS_OF_NODES):
        clock.advance(DAY_S)
        cost = [30_000_000, 1_000_000, None][number % 3]  # None: killed before it was settled
        found = await asyncio.gather(*(nodes[lane % len(nodes)].ask(cost) for lane in range(LANES)))
        row = await nodes[0].row()
        given = [one.reserved for one in found if isinstance(one, Reserved)]

        assert given
        assert row.used <= CAP
        if cost is None:
            assert row.reserved == sum(given) > CAP - 10_240_000  # less buys no answer
            assert [one for one in found if isinstance(one, BudgetRefusal)]
        else:
            assert row.reserved == 0
            assert row.spent == sum(min(cost, reserved) for reserved in given)
