"""The answers: by somebody's word, by the next message, by the end of the time, or by none.

Each is one commit: what was asked is decided, its timer is gone, and the session that asked has
the answer as a stimulus, which opens a turn there.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from wakeful.approvals import approvals
from wakeful.approvals.approvals import Approval
from wakeful.approvals.asking import event_data, timer_id
from wakeful.broker.settlement import Settled
from wakeful.bus.bus import Bus
from wakeful.intake.filing import File
from wakeful.notices.notices import Notices
from wakeful.prompts import approvals as prompts
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.turns import turns
from wakeful.vocabulary.approving import ApprovalKind, ApprovalState, ExpiryDefault
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Priority, Stimulus, Trust
from wakeful.vocabulary.text import shortened

STEP = 100  # rows that are looked at together
LONGEST_NOTE = 10_000  # characters kept of an answer
BY_TIME = "time"  # who decided: nobody did, and the rule of the tool says what that means

_payloads = msgspec.json.Decoder(dict[str, str])


class Answering:
    """Decides what is open; the caller holds the lock of the lane that asked."""

    def __init__(self, bus: Bus, notices: Notices, file: File) -> None:
        self._bus = bus
        self._notices = notices
        self._file = file

    def grant(self, tx: Tx, approval: Approval, by: str, note: str | None) -> Approval | None:
        """Let a call run, or answer a question; None if it was decided before."""
        if approval.kind is ApprovalKind.QUESTION:
            text = prompts.answered(approval.number, approval.question or "", note or "")
        else:
            text = prompts.granted(approval.number, approval.tool or "", note)
        return self._decide(tx, approval, ApprovalState.GRANTED, by, note, text)

    def deny(self, tx: Tx, approval: Approval, by: str, note: str | None) -> Approval | None:
        """Let a call not run, or leave a question without an answer."""
        if approval.kind is ApprovalKind.QUESTION:
            text = prompts.unanswered(approval.number, approval.question or "", note)
        else:
            text = prompts.denied(
                approval.number, approval.tool or "", approval.arguments or "", note
            )
        return self._decide(tx, approval, ApprovalState.DENIED, by, note, text)

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """Decide what nobody has decided in time."""
        for due in dues:
            found = approvals.get(tx, _payloads.decode(due.timer.payload)["approval_id"])
            if found is not None and found.state is ApprovalState.OPEN:
                self._expire(tx, found)

    def answer_by(self, tx: Tx, stimulus: Stimulus) -> Approval | None:
        """Take a person's message as the answer to the oldest open question of its session."""
        if not stimulus.kind.rule.answers_questions or stimulus.preemptions:
            return None
        question = approvals.open_question(tx, stimulus.session_key, stimulus.seq)
        if question is None:
            return None
        answered = replace(
            question,
            state=ApprovalState.GRANTED,
            note=shortened(stimulus.text, LONGEST_NOTE),
            decided_by=stimulus.source,
            decided_at=tx.now,
            stimulus_id=stimulus.id,
        )
        self._write(tx, answered)
        return answered

    def on_settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """Take back the grants whose answers ended without their calls."""
        ids = [one.id for one in settled if one.kind and one.kind.rule.is_answer]
        for voided in approvals.void(tx, ids) if ids else ():
            self._publish(tx, voided, None)

    def cancel_all(self, tx: Tx, session_key: str) -> None:
        """Cancel what is open in a session that is deleted, or begins anew."""
        while found := approvals.open_in(tx, session_key, STEP):
            for one in found:
                self._write(tx, replace(one, state=ApprovalState.CANCELLED, decided_at=tx.now))

    def _expire(self, tx: Tx, approval: Approval) -> None:
        number, tool = approval.number, approval.tool or ""
        what = f"{tool} in {approval.session_key}"
        if approval.kind is ApprovalKind.QUESTION:
            text = prompts.question_expired(number, approval.question or "")
            self._decide(tx, approval, ApprovalState.EXPIRED, BY_TIME, None, text)
            sentence = f"Nobody answered question #{number} of {approval.session_key} in time."
        elif approval.on_expiry is ExpiryDefault.ALLOW:
            self.grant(tx, approval, BY_TIME, None)
            sentence = f"Nobody decided approval #{number} in time: {what} was allowed, by its rule"
        else:
            text = prompts.expired(number, tool, approval.arguments or "")
            self._decide(tx, approval, ApprovalState.EXPIRED, BY_TIME, None, text)
            sentence = f"Nobody decided approval #{number} in time: {what} was not run."
        self._notices.add(tx, "approval", approval.id, "expired", sentence, approval.agent_id)

    def _decide(
        self,
        tx: Tx,
        approval: Approval,
        state: ApprovalState,
        by: str,
        note: str | None,
        text: str,
    ) -> Approval | None:
        if approval.state is not ApprovalState.OPEN:
            return None
        (receipt,) = self._file(tx, [_draft(tx, approval, text, by)])
        decided = replace(
            approval,
            state=state,
            note=note,
            decided_by=by,
            decided_at=tx.now,
            stimulus_id=receipt.stimulus_id,
        )
        self._write(tx, decided)
        if receipt.outcome is Outcome.SUPPRESSED:  # nothing will come of it, and nothing may run
            for voided in approvals.void(tx, [receipt.stimulus_id]):
                self._publish(tx, voided, None)
                return voided
        return decided

    def _write(self, tx: Tx, decided: Approval) -> None:
        is_first = approvals.decide(tx, decided)
        assert is_first, decided.id  # it was read as open under the lock of its lane
        timers.cancel(tx, timer_id(decided.id))
        self._publish(tx, decided, decided.decided_by)

    def _publish(self, tx: Tx, approval: Approval, by: str | None) -> None:
        self._bus.publish(
            tx,
            f"approval.{approval.state.value}",
            approval.session_key,
            turn_id=approval.turn_id,
            stimulus_id=approval.stimulus_id,
            **event_data(approval, by),
        )


def _draft(tx: Tx, approval: Approval, text: str, by: str) -> Draft:
    """Return the answer as the session gets it: with no more trust than whoever asked has now."""
    asking = turns.get_partly(tx, approval.turn_id)
    is_external = approval.trust is Trust.EXTERNAL or (
        asking is not None and asking.trust is not Trust.OPERATOR
    )
    return Draft(
        session_key=approval.session_key,
        trust=Trust.EXTERNAL if is_external else Trust.OPERATOR,
        owner=OPERATOR,
        text=text,
        kind=Kind.APPROVAL,
        priority=Priority.NEXT,
        source=approval.source,  # who caused the call pays for what comes of it
        cause_id=approval.turn_id,
        root_id=approval.root_id,
        # A person stands between the two: only what decides itself makes the chain longer.
        depth=approval.depth + (by == BY_TIME),
        route=approval.route,
    )
