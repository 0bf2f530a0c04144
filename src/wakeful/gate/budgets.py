"""Budgets: what is set aside before a question, and what becomes of it with the answer.

A question is on record together with what it may cost, and what it may cost is what its model is
told at most to say. Whatever ends it settles it, once: at its price, at an estimate, or at nothing.
"""

import shlex
from collections.abc import Sequence
from datetime import date

from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows, money
from wakeful.gate.budget_rows import AGENT, Amount, BudgetRow
from wakeful.gate.days import Days
from wakeful.gate.money import Grant, dollars
from wakeful.models.tariffs import Tariff
from wakeful.notices.notices import Notices
from wakeful.store.database import Tx
from wakeful.turns.asks import Reserved, SettledAsk
from wakeful.vocabulary.agent import Agents, ThrottleRules
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record

GIVEN_BACK_MS = 2_000  # after which what was set aside for others may have been given back

UNTHROTTLED = ThrottleRules(per_hour=None)
NO_RULES = BudgetRules(money_per_day=None, turns_per_day=None, money_per_chain=None)


class Payer(Record):
    """Who asks, and from which purses that is paid."""

    agent_id: str
    origin: Origin
    source: str
    for_people: bool  # a person said or caused it
    is_external: bool = False  # somebody from outside began it
    opens: bool = False  # it is the first question of a turn that counts


class PricedQuestion(Record):
    """What is to be asked, as far as it can be known before."""

    tariffs: Sequence[Tariff]
    read: int  # tokens
    most: int | None = None  # tokens of the answer, where something else limits it
    turn_cap: int | None = None  # what its turn may spend
    allowance: int | None = None  # and may still spend


class BudgetRefusal(Record):
    """Why a question may not be asked."""

    sentence: str
    look_at: int | None = None  # when it may be: what is missing is only set aside for others


class Budgets:
    """Sets money aside and settles it; the caller's transaction holds the agent's budget."""

    def __init__(self, agents: Agents, days: Days, bus: Bus, notices: Notices) -> None:
        self.days = days
        self._agents = agents
        self._bus = bus
        self.notices = notices

    def rules(self, agent_id: str) -> BudgetRules:
        config = self._agents.find(agent_id)
        return NO_RULES if config is None else config.budget

    def throttle(self, agent_id: str) -> ThrottleRules:
        config = self._agents.find(agent_id)
        return UNTHROTTLED if config is None else config.throttle

    def today(self, tx: Tx, agent_id: str, scopes: Sequence[str]) -> dict[str, BudgetRow]:
        """Return rows of an agent as they count now."""
        day = self.days.of(tx.now)
        rows = budget_rows.of_agent(tx, agent_id, scopes)
        return {scope: row.today(day, tx.now) for scope, row in rows.items()}

    def reserve(self, tx: Tx, payer: Payer, question: PricedQuestion) -> Reserved | BudgetRefusal:
        """Set aside what a question may cost, or say why it may not be asked."""
        budget_rows.require(tx, payer.agent_id)
        rules, tariffs, read = self.rules(payer.agent_id), question.tariffs, question.read
        cap = _least(budget_rows.cap_of(rules, AGENT), question.turn_cap)
        want = money.wanted(tariffs, read, cap, question.most)
        scopes = budget_rows.scopes_of(
            rules, payer.origin, payer.source, is_external=payer.is_external
        )
        others = 0 if payer.for_people else want.reserved
        asked = Amount(reserved=want.reserved, others=others, turns=int(payer.opens))
        day = self.days.of(tx.now)
        found = budget_rows.reserve(tx, payer.agent_id, scopes, rules, day, asked)
        agent = next((row for row in found if row.scope == AGENT), None)
        rows = [budget_rows.with_share(row, agent, rules) for row in found]
        left, tightest = _tightest(rows, rules, payer, asked)
        if question.allowance is not None and (left is None or question.allowance < left):
            left, tightest = question.allowance, None
        grant = want if left is None else money.affordable(tariffs, read, want, left)
        day = max(row.day for row in rows)
        if grant is not want:
            self._give_back(tx, payer, scopes, day, want, grant)
        if grant is None:
            rest = [budget_rows.given_back(row, asked) for row in rows]
            left, _ = _tightest(rest, rules, payer, asked)
            if tightest and left and money.affordable(tariffs, read, want, left) is not None:
                return BudgetRefusal(sentence="", look_at=tx.now + GIVEN_BACK_MS)
            return self._refused(tx, tightest)
        if payer.opens:
            self._warn_of_turns(tx, rows, rules)
        return Reserved(
            reserved=grant.reserved,
            max_tokens=grant.max_tokens,
            day=day,
            scopes=scopes,
            for_people=payer.for_people,
        )

    def _give_back(
        self, tx: Tx, payer: Payer, scopes: Sequence[str], day: int, want: Grant, got: Grant | None
    ) -> None:
        """Set aside less than was wanted, or nothing."""
        less = (0 if got is None else got.reserved) - want.reserved
        turns = -int(payer.opens) if got is None else 0
        by = Amount(reserved=less, others=0 if payer.for_people else less, turns=turns)
        budget_rows.change(tx, payer.agent_id, scopes, day, by)

    def settle(self, tx: Tx, agent_id: str, settled: SettledAsk, model: str = "") -> None:
        """Turn what was set aside into what it cost; None: nobody knows the price."""
        reservation, cost = settled.reserved, settled.cost
        if not reservation.scopes:
            return  # asked before there were budgets
        budget_rows.require(tx, agent_id)
        spent, reserved = cost or 0, reservation.reserved
        others = 0 if reservation.for_people else spent - reserved
        by = Amount(reserved=-reserved, spent=spent, others=others, unpriced=int(cost is None))
        rows = budget_rows.change(tx, agent_id, reservation.scopes, reservation.day, by)
        for row in rows:
            if spent > reserved and row.scope == AGENT:
                self._publish(tx, "budget.overrun", row, over=dollars(spent - reserved))
            if cost is None and row.scope == AGENT and row.unpriced == 1:
                self._tell_unpriced(tx, agent_id, model)
            if budget_rows.is_nearly_spent(row):
                self._warn(tx, row)

    def exhausted(self, tx: Tx, row: BudgetRow) -> int:
        """Note that nothing is left in a scope, once a day; return when the next day begins."""
        look_at = self.days.begin(row.day + 1)
        if not row.is_exhausted and budget_rows.mark(tx, row, "is_exhausted"):
            self._publish(tx, "budget.exhausted", row, look_at=look_at)
        return look_at

    def raise_caps(
        self,
        tx: Tx,
        agent_id: str,
        scope: str,
        *,
        money: int,
        turns: int,
        until: int | None,
        by: str,
    ) -> BudgetRow:
        """Let a scope use more until an instant, or until the day ends."""
        budget_rows.require(tx, agent_id)
        day = self.days.of(tx.now)
        row = self.today(tx, agent_id, [scope]).get(scope) or budget_rows.unused(
            agent_id, scope, self.rules(agent_id), day
        )
        end = self.days.begin(row.day + 1) if until is None else until
        raised = budget_rows.raise_caps(tx, row, money=money, turns=turns, until=end)
        self._publish(tx, "budget.raised", raised, by=by, look_at=end)
        return raised

    def sentence(self, row: BudgetRow | None, look_at: int) -> str:
        """Say that nothing is left, until when, and what may be done about it."""
        agent_id, option = ("main", "") if row is None else (row.agent_id, _option(row))
        command = f"`wakeful budget raise 1.00 --agent {agent_id}{option}`"
        if row is not None and option:
            who = "this source" if _word(row) == budget_rows.SOURCE else _named(row.scope)
            return (
                f"I stopped: what {who} may use today is used up. It is renewed when the next "
                f"day begins; {command} raises it."
            )
        return (
            "I stopped: today's budget is used up. It is renewed when the next day begins; "
            f"`/budget raise 1.00`, or {command}, raises it."
        )

    def _refused(self, tx: Tx, tightest: BudgetRow | None) -> BudgetRefusal:
        if tightest is None:
            return BudgetRefusal(sentence="")
        return BudgetRefusal(sentence=self.sentence(tightest, self.exhausted(tx, tightest)))

    def _warn(self, tx: Tx, row: BudgetRow) -> None:
        if not budget_rows.mark(tx, row, "is_warned"):
            return
        top = budget_rows.top_origin(tx, row.agent_id, row.day)
        self._publish(tx, "budget.warned", row, top_origin=top)
        cap = dollars((row.cap or 0) + row.raised_money)
        text = (
            f"{row.agent_id} has spent ${dollars(row.spent):.2f} of the ${cap:.2f} that "
            f"{_named(row.scope)} may spend today; most of it by {top or 'people'}. "
            f"`wakeful budget raise 1.00 --agent {row.agent_id}{_option(row)}` allows more."
        )
        subject = f"{row.agent_id} {row.scope}"
        self.notices.add(tx, "budget", subject, str(row.day), text, row.agent_id)

    def _warn_of_turns(self, tx: Tx, rows: Sequence[BudgetRow], rules: BudgetRules) -> None:
        """Tell people, once for each limit and day, that most of its turns are used."""
        for row in rows:
            left = budget_rows.turns_left(row, rules)
            if left is None or row.turns < (limit := row.turns + left) * budget_rows.WARN_AT:
                continue
            text = (
                f"{row.agent_id} has begun {row.turns} of the {limit} turns that "
                f"{_beginner(row.scope)} today; `wakeful budget raise --turns 50 --agent "
                f"{row.agent_id}{_option(row)}` allows more."
            )
            subject, episode = f"{row.agent_id} {row.scope} turns", f"{row.day} {limit}"
            if self.notices.add(tx, "budget", subject, episode, text, row.agent_id):
                self._publish(tx, "budget.warned", row, turns=row.turns, turns_cap=limit)

    def _tell_unpriced(self, tx: Tx, agent_id: str, model: str) -> None:
        self._bus.publish(tx, "budget.unpriced", agent_id=agent_id, model=model)
        text = (
            f"Nobody knows what {model} costs: only its turns count against the budget of "
            f"{agent_id}. `models` in the settings takes its prices."
        )
        self.notices.add(tx, "unpriced", model, "", text, agent_id)

    def _publish(self, tx: Tx, kind: str, row: BudgetRow, **more: object) -> None:
        cap = None if row.cap is None else dollars(row.cap + row.raised_money)
        day = date.fromordinal(row.day).isoformat()
        scope = {"agent_id": row.agent_id, "scope": row.scope, "day": day, "cap": cap}
        data = {**scope, "spent": dollars(row.spent), **more}
        self._bus.publish(tx, Event(kind=kind, data=data))


def _named(scope: str) -> str:
    return "it" if scope == AGENT else scope.replace(":", " ", 1)


def _beginner(scope: str) -> str:
    by_itself = " by itself" if scope == AGENT else ""
    return f"{_named(scope)} may begin{by_itself}"


def _option(row: BudgetRow) -> str:
    """Return how a command names an origin or a source, as a shell reads it."""
    word, name = _word(row), row.scope.partition(":")[2]
    return "" if word == AGENT else f" --{word} {shlex.quote(name)}"


def _word(row: BudgetRow) -> str:
    """Return whether a limit is the agent's, an origin's or a source's."""
    return row.scope.partition(":")[0]


def _least(*amounts: int | None) -> int | None:
    return min((amount for amount in amounts if amount is not None), default=None)


def _tightest(
    rows: Sequence[BudgetRow], rules: BudgetRules, payer: Payer, asked: Amount
) -> tuple[int | None, BudgetRow | None]:
    """Return the least that was left in a scope before this amount was set aside, and where."""
    found: tuple[int | None, BudgetRow | None] = (None, None)
    for row in rows:
        left = budget_rows.money_left(row, rules, for_people=payer.for_people)
        if left is not None and (found[0] is None or left + asked.reserved < found[0]):
            found = (left + asked.reserved, row)
    return found
