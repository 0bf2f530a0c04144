"""Mutants that break what budgets promise."""
# A mutant must reach into what is private: that is where promises are kept.
# pyright: reportPrivateUsage=false

from collections import Counter
from typing import Any

from msgspec.structs import replace

from tests.proofs.patching import original, patch
from wakeful.approvals.approvals import Approval
from wakeful.gate.budget_rows import BudgetRow
from wakeful.gate.budgets import BudgetRefusal, Budgets, Payer, PricedQuestion
from wakeful.gate.money import dollars
from wakeful.gate.storms import Storm, StormLimits
from wakeful.store.database import Tx
from wakeful.transcript.sessions import Session
from wakeful.turn.attempt import TurnAttempt
from wakeful.turn.commit import TurnCommit
from wakeful.turns import turns
from wakeful.turns.asks import AskEnd, Purpose, Reserved, SettledAsk
from wakeful.vocabulary.kinds import RULES, Human, Kind
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.stimulus import Draft

RESERVE = "wakeful.gate.budgets:Budgets.reserve"
RESERVE_ROWS = "wakeful.gate.budget_rows:_RESERVE"
LOAD_STEP = "wakeful.lanes.opening:load_step"
SETTLE = "wakeful.gate.budgets:Budgets.settle"
NOTE_STORM = "wakeful.gate.storms:note"


def reserve_after_the_call() -> None:
    """Ask first, and look at the money when the answer is there."""
    reserve = original(RESERVE)

    def reserve_nothing(
        self: Budgets, tx: Tx, payer: Payer, question: PricedQuestion
    ) -> Reserved | BudgetRefusal:
        found = reserve(self, tx, payer, replace(question, tariffs=()))
        if isinstance(found, BudgetRefusal):
            return found
        return replace(found, max_tokens=question.tariffs[0].max_output)

    patch(RESERVE, reserve_nothing)


def settle_twice() -> None:
    """Pay for every answer twice, once for each time that it is heard of."""
    settle = original(SETTLE)

    def settle_again(
        self: Budgets, tx: Tx, agent_id: str, settled: SettledAsk, model: str = ""
    ) -> None:
        settle(self, tx, agent_id, settled, model)
        again = replace(settled, reserved=replace(settled.reserved, reserved=0))
        settle(self, tx, agent_id, again, model)

    patch(SETTLE, settle_again)


def budget_in_memory() -> None:
    """Know of nothing that was spent or set aside before this process began."""
    reserve = original("wakeful.gate.budget_rows:reserve")
    known: set[str] = set()

    def reserve_of_this_life(tx: Tx, agent_id: str, *args: Any) -> list[BudgetRow]:
        if agent_id not in known:
            known.add(agent_id)
            zeros = ", ".join(f"{name} = 0" for name in ("spent", "reserved", "others", "turns"))
            tx.run(f"UPDATE budgets SET {zeros} WHERE agent_id = :id", id=agent_id)
        return reserve(tx, agent_id, *args)

    patch("wakeful.gate.budget_rows:reserve", reserve_of_this_life)


def day_moves_back() -> None:
    """Begin the day anew whenever the clock shows another one, also an earlier one."""
    sql: str = original(RESERVE_ROWS)
    anew = sql.replace("day = CASE WHEN day < :day THEN :day ELSE day END", "day = :day")
    patch(RESERVE_ROWS, anew.replace("day < :day", "day <> :day"))


def usage_settled_again_on_resume() -> None:
    """Count once more, when a turn goes on, what its last answer took."""
    load = original(LOAD_STEP)

    def load_and_count(tx: Tx, session: Session, attempt: TurnAttempt) -> bool:
        is_answered: bool = load(tx, session, attempt)
        turn = attempt.turn
        row = tx.one(
            "SELECT SUM(cost) FROM asks WHERE turn_id = :id AND step = :step AND state = :state",
            id=turn.id,
            step=turn.step,
            state="answered",
        )
        if row is not None and row[0]:
            turns.note_usage(tx, turn.id, Usage(cost=dollars(row[0])), turn.model or "")
        return is_answered

    patch(LOAD_STEP, load_and_count)


def broken_call_is_free() -> None:
    """Take an answer that broke off for one that was refused."""
    fail = original("wakeful.turn.commit:TurnCommit._fail")

    def fail_for_free(self: TurnCommit, how: AskEnd) -> None:
        fail(self, replace(how, cost=0, costs_all=False, is_estimate=False))

    patch("wakeful.turn.commit:TurnCommit._fail", fail_for_free)


def fallback_is_free() -> None:
    """Pay for the model that answered, and for none that broke off before it."""

    def lost_cost(*_: Any) -> float:
        return 0.0

    patch("wakeful.models.fallback:lost_cost", lost_cost)


def summary_not_counted() -> None:
    """Forget what a summary took to write."""
    settle = original("wakeful.turn.commit:TurnCommit._settle")

    def settle_replies(self: TurnCommit, how: AskEnd, model: str) -> None:
        row = self.tx.one(
            "SELECT purpose FROM asks WHERE turn_id = :id AND step = :step AND state = 'asked'",
            id=self.turn.id,
            step=self.turn.step,
        )
        is_reply = row is None or row[0] == Purpose.REPLY.value
        settle(self, how if is_reply else replace(how, usage=None, cost=0), model)

    patch("wakeful.turn.commit:TurnCommit._settle", settle_replies)


def chain_budget_ignored() -> None:
    patch("wakeful.gate.gate:WakeLook._is_loop", _never)


def storms_ignored() -> None:
    """Let one source open as many turns as it likes."""

    def note(*_: Any) -> Storm:
        return Storm(is_tripped=False, is_new=False)

    patch(NOTE_STORM, note)


def storms_forgotten() -> None:
    """Count what a source opens in memory, which a kill empties."""
    counts: Counter[tuple[str, str]] = Counter()

    def note(tx: Tx, source: str, session_key: str, limits: StormLimits) -> Storm:
        counts[source, session_key] += 1
        return Storm(is_tripped=counts[source, session_key] > limits.turns, is_new=False)

    patch(NOTE_STORM, note)


def depth_not_raised() -> None:
    """Take what the clock has answered for a person's answer."""
    drafted = original("wakeful.approvals.answering:_draft")

    def draft(tx: Tx, approval: Approval, text: str, by: str) -> Draft:
        return replace(drafted(tx, approval, text, by), depth=approval.depth)

    patch("wakeful.approvals.answering:_draft", draft)


def own_work_counts_as_human() -> None:
    """Take what a helper announces for a person's word."""
    RULES[Kind.SUBAGENT_ANNOUNCE] = replace(RULES[Kind.SUBAGENT_ANNOUNCE], human=Human.YES)


def _never(*_: Any) -> bool:
    return False
