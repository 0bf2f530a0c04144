"""Look at budgets and raise them, by the operator's word."""

from collections.abc import Sequence

from wakeful.access import audit
from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows, parked
from wakeful.gate.budget_rows import AGENT, BudgetRow
from wakeful.gate.budgets import Budgets
from wakeful.gate.money import dollars, nano
from wakeful.store.database import Store, Tx
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record

MOST_MONEY = 1_000_000.0  # dollars of one raise
MOST_TURNS = 1_000_000
LONGEST_MS = 366 * 86_400_000


class Money(Record):
    """Dollars of one day."""

    cap: float | None  # None: any amount
    spent: float
    reserved: float
    left_for_others: float | None  # for what no person said or caused
    unpriced_calls: int


class TurnsSpent(Record):
    """Turns of one day that were no person's own."""

    cap: int | None
    used: int


class BudgetStatus(Record):
    """What is left of one budget."""

    agent_id: str
    scope: str
    resets_at: int
    money: Money
    turns: TurnsSpent
    parked: int  # stimuli that wait for money or turns


class Raise(Record):
    """How much more a scope may use."""

    agent_id: str
    money: float = 0.0
    turns: int = 0
    until: int | None = None  # None: until the day ends
    scope: str = AGENT


class BudgetActs:
    """Shows what is left, and raises it."""

    def __init__(
        self, store: Store, bus: Bus, ids: Ids, clock: Clock, agents: Agents, budgets: Budgets
    ) -> None:
        self._store = store
        self._bus = bus
        self._ids = ids
        self._clock = clock
        self._agents = agents
        self._budgets = budgets

    async def of_agent(self, agent_id: str) -> list[BudgetStatus]:
        """Return what is left of an agent's budgets, its own first."""
        rules = self._agents.get(agent_id, "agent").budget
        rows = await self._store.read(
            budget_rows.BUDGETS.select("WHERE agent_id = :agent_id"), agent_id=agent_id
        )
        found = [budget_rows.BUDGETS.read(row) for row in rows]
        ((count,),) = await self._store.read(
            "SELECT COUNT(*) FROM stimuli WHERE state = 'parked' AND agent_id = :agent_id "
            "AND state_reason = 'budget'",
            agent_id=agent_id,
        )
        now = self._clock.now()
        day = self._budgets.days.of(now)
        known = {row.scope: row.today(day, now) for row in found}
        return [
            self._status(known.get(scope) or _new(agent_id, scope, day), rules, count)
            for scope in _scopes(rules, known)
        ]

    async def all(self) -> list[BudgetStatus]:
        return [one for agent_id in self._agents.ids() for one in await self.of_agent(agent_id)]

    async def increase(self, wish: Raise, by: str) -> tuple[BudgetStatus, int]:
        """Raise a budget and let what it kept waiting go on."""
        checked = self.checked(wish)
        await self._store.transact(
            lambda tx: self.increase_in(tx, checked, by), locks=[budget_rows.lock(wish.agent_id)]
        )
        released = await self.release(wish.agent_id)
        found = await self.of_agent(wish.agent_id)
        return next(one for one in found if one.scope == wish.scope), released

    def checked(self, wish: Raise) -> Raise:
        """Refuse a raise that means nothing."""
        rules = self._agents.get(wish.agent_id, "agent").budget
        if wish.scope not in _scopes(rules, {}):
            known = ", ".join(_scopes(rules, {}))
            raise InvalidInput("scope", f"must be one of {known}, not {wish.scope[:60]!r}")
        if not 0 <= wish.money <= MOST_MONEY:
            raise InvalidInput("money", f"must be from 0 to {MOST_MONEY:.0f}, not {wish.money}")
        if not 0 <= wish.turns <= MOST_TURNS:
            raise InvalidInput("turns", f"must be from 0 to {MOST_TURNS}, not {wish.turns}")
        if not wish.money and not wish.turns:
            raise InvalidInput("money", "must be above 0, or turns must be")
        now = self._clock.now()
        if wish.until is not None and not now < wish.until <= now + LONGEST_MS:
            raise InvalidInput("until", "must be a time within the next year")
        return wish

    def increase_in(self, tx: Tx, wish: Raise, by: str) -> BudgetRow:
        """Raise as part of another change, which holds the budget; `release` must follow."""
        audit.note(tx, self._ids, who=by, action="budget-raise", target=wish.agent_id)
        return self._budgets.raise_caps(
            tx,
            wish.agent_id,
            wish.scope,
            money=nano(wish.money),
            turns=wish.turns,
            until=wish.until,
            by=by,
        )

    async def release(self, agent_id: str) -> int:
        """Let go on what waits for money or turns; what still may not is parked again."""
        return await parked.release(self._store, self._bus, agent_id, "budget")

    def _status(self, row: BudgetRow, rules: BudgetRules, parked: int) -> BudgetStatus:
        cap = budget_rows.cap_of(rules, row.scope)
        limit = budget_rows.limits_of(rules, row.scope).turns_per_day
        left = budget_rows.money_left(row, rules, for_people=False)
        return BudgetStatus(
            agent_id=row.agent_id,
            scope=row.scope,
            resets_at=self._budgets.days.begin(row.day + 1),
            money=Money(
                cap=None if cap is None else dollars(cap + row.raised_money),
                spent=dollars(row.spent),
                reserved=dollars(row.reserved),
                left_for_others=None if left is None else max(0.0, dollars(left)),
                unpriced_calls=row.unpriced,
            ),
            turns=TurnsSpent(
                cap=None if limit is None else limit + row.raised_turns, used=row.turns
            ),
            parked=parked if row.scope == AGENT else 0,
        )


def _new(agent_id: str, scope: str, day: int) -> BudgetRow:
    return BudgetRow(agent_id=agent_id, scope=scope, day=day)


def _scopes(rules: BudgetRules, known: dict[str, BudgetRow]) -> Sequence[str]:
    """Return the scopes that have a limit or have spent something, the agent's own first."""
    limited = [f"origin:{name}" for name in rules.origins]
    limited += [f"source:{name}" for name in rules.sources]
    others = sorted({*limited, *known} - {AGENT})
    return [AGENT, *others]
