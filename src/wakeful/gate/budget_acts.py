"""Raise budgets, by the operator's word."""

from wakeful.access import audit
from wakeful.gate import budget_rows, parked
from wakeful.gate.budget_rows import AGENT
from wakeful.gate.budgets import Budgets
from wakeful.gate.money import nano
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record

MOST_MONEY = 1_000_000.0  # dollars of one raise
MOST_TURNS = 1_000_000
LONGEST_MS = 366 * 86_400_000


class Raise(Record):
    """How much more a scope may use."""

    agent_id: str
    money: float = 0.0
    turns: int = 0
    until: int | None = None  # None: until the day ends
    scope: str = AGENT


class BudgetActs:
    """Raises what an agent may spend."""

    def __init__(
        self, store: Store, ids: Ids, clock: Clock, agents: Agents, budgets: Budgets
    ) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._agents = agents
        self._budgets = budgets

    async def increase(self, wish: Raise, by: str) -> int:
        """Raise a budget; return how much goes on that it kept waiting."""
        checked = self.checked(wish)
        return await self._store.transact(
            lambda tx: self.increase_in(tx, checked, by), locks=[budget_rows.lock(wish.agent_id)]
        )

    def checked(self, wish: Raise) -> Raise:
        """Refuse a raise that means nothing."""
        rules = self._agents.get(wish.agent_id, "agent").budget
        scopes = budget_rows.limited_scopes(rules)
        is_source = wish.scope.startswith(f"{budget_rows.SOURCE}:") and len(wish.scope) <= 512
        if wish.scope not in scopes and not is_source:
            known = ", ".join([*scopes, f"{budget_rows.SOURCE}:NAME"])
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

    def increase_in(self, tx: Tx, wish: Raise, by: str) -> int:
        """Raise as part of another change, which holds the budget.

        What waits is let go on after this commit; what still may not waits again.
        """
        audit.note(tx, self._ids, who=by, action="budget-raise", target=wish.agent_id)
        self._budgets.raise_caps(
            tx,
            wish.agent_id,
            wish.scope,
            money=nano(wish.money),
            turns=wish.turns,
            until=wish.until,
            by=by,
        )
        timers.put(tx, parked.release_timer(wish.agent_id, tx.now))
        return parked.count_waiting_in(tx, wish.agent_id)
