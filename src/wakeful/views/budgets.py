"""What is left of the agents' budgets, and who waits for more."""

from collections.abc import Collection, Sequence

from wakeful.gate import budget_rows, parked
from wakeful.gate.budget_rows import AGENT, BudgetRow
from wakeful.gate.days import Days
from wakeful.gate.money import dollars
from wakeful.store.database import Store
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.record import Record

SHOWN_SOURCES = 20  # of those that the settings do not name

_OF_AGENT = budget_rows.BUDGETS.select("WHERE agent_id = :agent_id")
_OF_SCOPES = budget_rows.BUDGETS.select("WHERE agent_id = :agent_id AND scope IN :scopes")


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
    parked: int  # stimuli, and wakes of sleepers, that wait for money or turns
    raised_until: int | None = None  # until when the caps are higher than the settings say


class BudgetView:
    """Reads the budgets, by the days of the user's zone."""

    def __init__(self, store: Store, clock: Clock, agents: Agents, days: Days) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._days = days

    async def own(self, agent_id: str) -> BudgetStatus:
        """Return what is left of what an agent may spend in all."""
        return (await self.of_agent(agent_id))[0]

    async def of_scope(self, agent_id: str, scope: str) -> BudgetStatus:
        """Return what is left of one budget of an agent."""
        rules = self._agents.get(agent_id, "agent").budget
        rows = await self._store.read(_OF_SCOPES, agent_id=agent_id, scopes=[AGENT, scope])
        now = self._clock.now()
        day = self._days.of(now)
        known = {row.scope: row.today(day, now) for row in map(budget_rows.BUDGETS.read, rows)}
        row = known.get(scope) or BudgetRow(agent_id=agent_id, scope=scope, day=day)
        return self._status(budget_rows.with_share(row, known.get(AGENT), rules), rules, 0)

    async def of_agent(self, agent_id: str) -> list[BudgetStatus]:
        """Return what is left of an agent's budgets, its own first."""
        rules = self._agents.get(agent_id, "agent").budget
        rows = await self._store.read(_OF_AGENT, agent_id=agent_id)
        waiting = await parked.count_waiting(self._store, agent_id)
        now = self._clock.now()
        day = self._days.of(now)
        found = map(budget_rows.BUDGETS.read, rows)
        known = {row.scope: row.today(day, now) for row in found}
        own = known.get(AGENT)
        return [
            self._status(
                budget_rows.with_share(known[scope], own, rules)
                if scope in known
                else BudgetRow(agent_id=agent_id, scope=scope, day=day),
                rules,
                waiting if scope == AGENT else 0,
            )
            for scope in _shown(rules, known.values())
        ]

    async def all(self) -> list[BudgetStatus]:
        return [one for agent_id in self._agents.ids() for one in await self.of_agent(agent_id)]

    def _status(self, row: BudgetRow, rules: BudgetRules, parked: int) -> BudgetStatus:
        cap = budget_rows.cap_of(rules, row.scope)
        limit = budget_rows.limits_of(rules, row.scope).turns_per_day
        left = budget_rows.money_left(row, rules, for_people=False)
        return BudgetStatus(
            agent_id=row.agent_id,
            scope=row.scope,
            resets_at=self._days.begin(row.day + 1),
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
            parked=parked,
            raised_until=row.raised_until or None,
        )


def _shown(rules: BudgetRules, spent: Collection[BudgetRow]) -> Sequence[str]:
    """Return the scopes that have a limit or have spent something, the agent's own first.

    Of sources from outside there may be very many: those that have used most today are shown.
    """
    own, *limited = budget_rows.limited_scopes(rules)
    used = {row.scope for row in spent if not row.scope.startswith(f"{budget_rows.SOURCE}:")}
    shares = [row for row in spent if row.scope not in used and (row.turns or row.used)]
    shares.sort(key=lambda row: (-row.turns, -row.used, row.scope))
    most = {row.scope for row in shares[:SHOWN_SOURCES]}
    return [own, *sorted({*limited, *used, *most} - {own})]
