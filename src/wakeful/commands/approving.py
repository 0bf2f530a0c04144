"""Commands that decide: `/approve`, `/deny`."""

from wakeful.commands.command import Caller, Deed, Said
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalKind
from wakeful.vocabulary.errors import InvalidInput

USAGE = "must be the number of what was asked, such as 3, and a text if there is something to say"


async def approve(services: Services, caller: Caller, rest: str) -> Deed:
    """Let a call run, or answer a question."""
    return await _deciding(services, caller, rest, ApprovalDecision.APPROVE)


async def deny(services: Services, caller: Caller, rest: str) -> Deed:
    """Refuse a call, or leave a question without an answer."""
    return await _deciding(services, caller, rest, ApprovalDecision.DENY)


async def _deciding(
    services: Services, caller: Caller, rest: str, decision: ApprovalDecision
) -> Deed:
    """Return the deed that decides, whichever session was asked in."""
    named, _, text = rest.strip().partition(" ")
    if not named:
        raise InvalidInput("number", USAGE)
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
