"""The wake gate: one durable place that says, before any model is asked, what may wake an agent.

Asked where a stimulus is accepted and again where its lane is claimed. What it says depends on
rows that are read in that transaction; a refusal is decided under the lock of the agent's budget,
so that whoever raises it finds everything that was put off.
"""

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.broker import stimuli
from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows, chains, money
from wakeful.gate.budget_rows import BudgetRow
from wakeful.gate.budgets import GIVEN_BACK_MS, Budgets
from wakeful.gate.quiet import QuietHours, QuietPeriod
from wakeful.gate.wakes import PASSED, GateVerdict, MayWake, Verdict, Wake
from wakeful.models.tariffs import Tariff
from wakeful.store.database import Tx
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.kinds import Refused
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, Trust

TariffsOf = Callable[[str], Sequence[Tariff]]  # of the model that an agent speaks with


class Asked(Record):
    """Which model would be asked, and how much it would have to read."""

    tariffs: Sequence[Tariff]
    read: int  # tokens


class WakeGate:
    """Asks, in this order: what features say, chains, quiet hours, budgets."""

    def __init__(
        self,
        bus: Bus,
        budgets: Budgets,
        quiet: QuietHours,
        tariffs_of: TariffsOf,
        features: MayWake,
    ) -> None:
        self.bus = bus
        self.budgets = budgets
        self.quiet = quiet
        self.tariffs_of = tariffs_of
        self.features = features

    def may_wake(
        self, tx: Tx, wakes: Sequence[Wake], asked: Asked | None = None
    ) -> Sequence[GateVerdict]:
        """Return what the gate says of stimuli that would have a model asked, one by one.

        `asked` says which model that is, where it is known, and what it would have to read.
        """
        look = WakeLook(self, tx)
        said = self.features(tx, wakes)
        return [
            verdict if verdict.verdict is not Verdict.PASS else look.may_wake(wake, asked)
            for verdict, wake in zip(said, wakes, strict=True)
        ]

    def is_for_people(self, tx: Tx, wake: Wake) -> bool:
        """Tell whether a person said or caused something."""
        return WakeLook(self, tx).is_for_people(wake)


class WakeLook:
    """What the gate says in one transaction; what it reads, it reads once."""

    def __init__(self, gate: WakeGate, tx: Tx) -> None:
        self._gate = gate
        self._tx = tx
        self._rows: dict[tuple[str, tuple[str, ...]], dict[str, BudgetRow]] = {}
        self._quiet: dict[str, QuietPeriod | None] = {}
        self._passed: dict[tuple[Any, ...], GateVerdict] = {}  # by what all of them have in common

    def may_wake(self, wake: Wake, asked: Asked | None) -> GateVerdict:
        """Return what the gate says; where one passed, all that are like it do."""
        if wake.kind.rule.refused is Refused.NEVER:
            return PASSED  # it asks no model: neither money nor the hour is at stake
        likeness = (wake.agent_id, wake.kind, wake.source, wake.trust, wake.priority)
        if wake.depth or wake.root_id != wake.id or wake.ignores_quiet_hours:
            return self._verdict(wake, asked)
        if likeness not in self._passed:
            verdict = self._verdict(wake, asked)
            if verdict.verdict is not Verdict.PASS:
                return verdict
            self._passed[likeness] = verdict
        return self._passed[likeness]

    def _verdict(self, wake: Wake, asked: Asked | None) -> GateVerdict:
        if wake.depth and self._is_loop(wake):
            return GateVerdict(verdict=Verdict.LOOP)
        quiet_until = self._quiet_until(wake)
        if quiet_until is not None:
            return GateVerdict(verdict=Verdict.QUIET_HOURS, look_at=quiet_until)
        tariffs = self._gate.tariffs_of(wake.agent_id) if asked is None else asked.tariffs
        least = money.least_cost(tariffs, 0 if asked is None else asked.read)
        look_at = self._used_up_until(wake, least)
        if look_at is not None:
            return GateVerdict(verdict=Verdict.BUDGET, look_at=look_at)
        is_unpriced = bool(tariffs) and all(tariff.price is None for tariff in tariffs)
        return UNPRICED if is_unpriced else PASSED

    def is_for_people(self, wake: Wake) -> bool:
        """Tell whether a person said or caused it."""
        if wake.root_id == wake.id:
            return chains.is_person(wake.kind, wake.trust)
        root = chains.root(self._tx, wake.root_id)
        return root is not None and root.is_person

    def _quiet_until(self, wake: Wake) -> int | None:
        """Return until when a stimulus must leave its people in peace, None if it need not.

        What is urgent passes, what people and other agents say, what a person wants whatever the
        hour, and what a person caused.
        """
        is_urgent = wake.priority is Priority.NOW or wake.ignores_quiet_hours
        if is_urgent or wake.kind.rule.passes_quiet_hours:
            return None
        quiet = self._quiet_now(wake.agent_id)
        if quiet is None or self.is_for_people(wake):
            return None
        # Whoever ends it by hand holds the same lock, and then finds all that was put off.
        budget_rows.require(self._tx, wake.agent_id)
        return quiet.until

    def _quiet_now(self, agent_id: str) -> QuietPeriod | None:
        if agent_id not in self._quiet:
            self._quiet[agent_id] = self._gate.quiet.now_in(self._tx, agent_id)
        return self._quiet[agent_id]

    def _is_loop(self, wake: Wake) -> bool:
        """Tell whether a chain of causes has cost too much; the first time, tell others."""
        root = chains.root(self._tx, wake.root_id)
        rules = self._gate.budgets.rules(wake.agent_id if root is None else root.agent_id)
        if rules.money_per_chain is None:
            return False
        if chains.spent(self._tx, wake.root_id) < money.nano(rules.money_per_chain):
            return False
        if not stimuli.is_loop_known(self._tx, wake.root_id):
            self._gate.bus.publish(
                self._tx, "loop.cut", wake.session_key, root_id=wake.root_id, depth=wake.depth
            )
            text = (
                f"What began with {wake.root_id} has cost ${rules.money_per_chain:.2f}: "
                "nothing more that comes of it is begun."
            )
            notices = self._gate.budgets.notices
            key, agent_id = wake.session_key, wake.agent_id
            notices.add(self._tx, "loop", wake.root_id, "", text, agent_id, session_key=key)
        return True

    def _used_up_until(self, wake: Wake, least: int) -> int | None:
        """Return until when nothing is left for a stimulus, None if there is."""
        rules = self._gate.budgets.rules(wake.agent_id)
        scopes = budget_rows.scopes_of(
            rules, wake.kind.origin, wake.source, is_external=wake.trust is Trust.EXTERNAL
        )
        rows, day = self._today(wake.agent_id, scopes), self._gate.budgets.days.of(self._tx.now)
        found = [
            rows.get(scope) or budget_rows.unused(wake.agent_id, scope, rules, day)
            for scope in scopes
        ]
        now = [budget_rows.with_share(row, found[0], rules) for row in found]
        tight = [row for row in now if self._is_used_up(row, rules, wake, least)]
        if not tight:
            return None
        budget_rows.require(self._tx, wake.agent_id)
        return max(self._renewed_at(row, rules, wake, least) for row in tight)

    def _renewed_at(self, row: BudgetRow, rules: BudgetRules, wake: Wake, least: int) -> int:
        """Return when to look again: soon, where answers under way may give enough back."""
        if self._is_used_up(budget_rows.given_back(row), rules, wake, least):
            return self._gate.budgets.exhausted(self._tx, row)
        return self._tx.now + GIVEN_BACK_MS

    def _is_used_up(self, row: BudgetRow, rules: BudgetRules, wake: Wake, least: int) -> bool:
        turns = budget_rows.turns_left(row, rules)
        if turns is not None and turns <= 0 and not chains.is_person(wake.kind, wake.trust):
            return True
        for_all = budget_rows.money_left(row, rules, for_people=True)
        if for_all is None or least == 0:
            return False
        left = budget_rows.money_left(row, rules, for_people=False)
        if left is not None and left >= least:
            return False  # enough for anybody: nobody needs to know who it is for
        return for_all < least or not self.is_for_people(wake)

    def _today(self, agent_id: str, scopes: tuple[str, ...]) -> dict[str, BudgetRow]:
        wanted = (agent_id, scopes)
        if wanted not in self._rows:
            self._rows[wanted] = self._gate.budgets.today(self._tx, agent_id, scopes)
        return self._rows[wanted]


UNPRICED = GateVerdict(is_unpriced=True)
