"""Approve, deny, answer: by the operator's word, through whichever door."""

from wakeful.access import audit
from wakeful.approvals import approvals
from wakeful.approvals.answering import LONGEST_NOTE, Answering
from wakeful.approvals.approvals import Approval
from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.store.database import Lock, Store, Tx
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalKind
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean


class AlreadyDecided(InvalidInput):
    """What should be decided is not open any more."""


class ApprovalAnswer(Record):
    """What somebody decides about something that was found."""

    approval: Approval  # as it was found: its state is looked at again under the lock
    decision: ApprovalDecision
    note: str | None
    by: str

    @property
    def locks(self) -> tuple[Lock, ...]:
        """Return what whoever answers as part of another change must hold."""
        return lane_rows.lock(self.approval.session_key), halts.ASKING


class ApprovalActs:
    """Answers what agents have asked."""

    def __init__(self, store: Store, ids: Ids, answering: Answering) -> None:
        self._store = store
        self._ids = ids
        self._answering = answering

    async def answer(
        self, named: str, decision: ApprovalDecision, by: str, note: str | None = None
    ) -> Approval:
        """Decide what is open; raise AlreadyDecided if it is not."""
        answer = await self.checked(named, decision, by, note)
        failpoint("answer")
        answered = await self._store.transact(
            lambda tx: self.answer_in(tx, answer), locks=answer.locks
        )
        failpoint("answered")
        return answered

    async def checked(
        self, named: str, decision: ApprovalDecision, by: str, note: str | None
    ) -> ApprovalAnswer:
        """Find what somebody wants to decide, and refuse what cannot be meant."""
        approval = await approvals.find(self._store, named)
        text = clean(note or "").strip()
        if len(text) > LONGEST_NOTE:
            raise InvalidInput("note", f"must have at most {LONGEST_NOTE} characters")
        is_question = approval.kind is ApprovalKind.QUESTION
        if is_question and decision is ApprovalDecision.APPROVE and not text:
            raise InvalidInput("note", f"must be the answer to question #{approval.number}")
        return ApprovalAnswer(approval=approval, decision=decision, note=text or None, by=by)

    def answer_in(self, tx: Tx, answer: ApprovalAnswer) -> Approval:
        """Decide as part of another change, which holds the locks of the answer."""
        approval = approvals.get(tx, answer.approval.id)
        if approval is None:
            raise NotFound("approval", f"no approval {answer.approval.id!r}")
        action = f"approvals.{answer.decision.value}"
        audit.note(tx, self._ids, who=answer.by, action=action, target=approval.id)
        is_granted = answer.decision is ApprovalDecision.APPROVE
        decide = self._answering.grant if is_granted else self._answering.deny
        decided = decide(tx, approval, answer.by, answer.note)
        if decided is None:
            rule = f"#{approval.number} was decided before: {approval.state.value}"
            raise AlreadyDecided("approval", rule)
        return decided
