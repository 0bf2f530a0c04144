"""Commands about money: `/budget`."""

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.gate import budget_rows
from wakeful.gate.budget_acts import Raise
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.views.budgets import BudgetStatus
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput

USAGE = "must be nothing, or 'raise' with an amount of dollars such as 2.00"


async def budget(services: Services, caller: Caller, rest: str) -> Deed:
    agent_id = keys.agent_of(caller.session_key)
    if not rest:
        found = await services.views.budgets.of_agent(agent_id)
        return saying("\n".join(map(line_of, found)))
    word, _, amount = rest.partition(" ")
    if word != "raise" or not caller.principal.is_operator:
        raise InvalidInput("budget", USAGE)
    wish = services.budget_acts.checked(Raise(agent_id=agent_id, money=_dollars(amount)))
    who = caller.principal.name

    def act(tx: Tx) -> Said:
        services.budget_acts.increase_in(tx, wish, who)
        return Said(text=f"Raised today's budget of {agent_id} by ${wish.money:.2f}.")

    return Deed(act=act, locks=(budget_rows.lock(agent_id),))


def line_of(status: BudgetStatus) -> str:
    """Return what is left of a budget as a line."""
    money, turns = status.money, status.turns
    cap = "any amount" if money.cap is None else f"${money.cap:.2f}"
    parts = [f"${money.spent:.4f} of {cap} spent"]
    if money.reserved:
        parts.append(f"${money.reserved:.4f} set aside")
    if turns.cap is not None or turns.used:
        parts.append(f"{turns.used} of {'any number of' if turns.cap is None else turns.cap} turns")
    if money.unpriced_calls:
        parts.append(f"{money.unpriced_calls} answers of unknown price")
    if status.parked:
        parts.append(f"{status.parked} waiting; /budget raise 1.00 lets them go on")
    return f"{status.agent_id} {status.scope}: {', '.join(parts)}"


def _dollars(amount: str) -> float:
    try:
        return float(amount.strip().removeprefix("$"))
    except ValueError:
        raise InvalidInput("budget", USAGE) from None
