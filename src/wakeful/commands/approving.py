"""Commands that decide: `/approve`, `/deny`."""

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.prompts.approvals import line_of
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalKind, ApprovalState

MOST_OPEN = 10  # shown of what waits
NOTHING = "Nobody waits for an answer."


async def approve(services: Services, caller: Caller, rest: str) -> Deed:
    """Let a call run, or answer a question; without a number, show what waits."""
    return await _deciding(services, caller, rest, ApprovalDecision.APPROVE)


async def deny(services: Services, caller: Caller, rest: str) -> Deed:
    """Refuse a call, or leave a question without an answer."""
    return await _deciding(services, caller, rest, ApprovalDecision.DENY)


async def _showing(services: Services) -> Deed:
    """Return the deed of who has named nothing: the list of what may be named."""
    found = await services.views.approvals.page(ApprovalState.OPEN, None, MOST_OPEN + 1)
    lines = [line_of(one.number, one.tool, one.arguments, one.question) for one in found]
    more = ["… and more; `wakeful approvals list` shows them"] if len(found) > MOST_OPEN else []
    return saying("\n".join([*lines[:MOST_OPEN], *more]) or NOTHING)


async def _deciding(
    services: Services, caller: Caller, rest: str, decision: ApprovalDecision
) -> Deed:
    """Return the deed that decides, whichever session was asked in."""
    named, _, text = rest.strip().partition(" ")
    if not named:
        return await _showing(services)
    acts = services.approval_acts
    is_granted = decision is ApprovalDecision.APPROVE
    answer = await acts.checked(named, decision, caller.principal.name, text)

    def act(tx: Tx) -> Said:
        decided = acts.answer_in(tx, answer)
        if decided.kind is ApprovalKind.QUESTION:
            done = "Answered" if is_granted else "Left without an answer:"
            return Said(text=f"{done} question #{decided.number}.")
        done = "Approved" if is_granted else "Denied"
        return Said(text=f"{done} #{decided.number}: {decided.tool}.")

    return Deed(act=act, locks=answer.locks)
