"""Approvals, as part of I7: what must be approved runs once for each grant, and never without."""

from wakeful.approvals.approvals import Approval, hash_of
from wakeful.prompts.approvals import approved
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, key_of
from wakeful.turn.calls import APPROVED
from wakeful.turns.tool_calls import RecordedCall
from wakeful.vocabulary.approving import ApprovalKind, ApprovalState
from wakeful.vocabulary.entry import NoteBody
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import TERMINAL


def grants_are_used_once(history: History, finding: InvariantFinding) -> None:
    """Check every grant against the calls that ran by it, and every call against its grant."""
    for approval in history.db.approvals.values():
        _check_grant(history, approval, finding)
    calls = {key_of(call): call for call in history.db.calls}
    for line in history.begun:
        call = calls.get(str(line["key"]))
        if line["tool"] in history.asking and call is not None:
            _check_granted(history, call, finding)


def results(history: History, call: RecordedCall) -> list[ToolMessage]:
    """Return what a model was shown of an approved call: a line of the runtime, no result."""
    approval = history.db.approvals[call.call_id]
    start = approved(approval.number, call.name, approval.arguments or "", "")
    return [
        ToolMessage(call_id=call.call_id, name=call.name, text=body.text.removeprefix(start))
        for entry in history.entries_of_turn[call.turn_id]
        if isinstance(body := entry.content(), NoteBody)
        and body.topic == APPROVED
        and body.text.startswith(start)
    ]


def _check_grant(history: History, approval: Approval, finding: InvariantFinding) -> None:
    named, story = f"#{approval.number}", history.story(approval.turn_id, approval.used_by)
    used = [call for call in history.db.calls if call.call_id == approval.id]
    finding.expect(
        [call.turn_id for call in used] == ([] if approval.used_by is None else [approval.used_by]),
        f"{named} is said to be used by {approval.used_by}, and {len(used)} calls have its grant",
        story,
    )
    finding.expect(
        approval.used_by is None or approval.state is ApprovalState.GRANTED,
        f"{named} is {approval.state.value}, and was used",
        story,
    )
    answer = history.db.stimuli.get(approval.stimulus_id or "")
    is_over = answer is not None and answer.state in TERMINAL
    is_grant = approval.state is ApprovalState.GRANTED and approval.kind is ApprovalKind.TOOL
    finding.expect(
        not is_grant or not is_over or approval.used_by is not None,
        f"{named} was granted, its answer has ended, and nothing has run",
        story,
    )


def _check_granted(history: History, call: RecordedCall, finding: InvariantFinding) -> None:
    """The call that ran is the one that was granted, in the session that asked."""
    grant, turn = history.db.approvals.get(call.call_id), history.db.turns.get(call.turn_id)
    finding.expect(
        grant is not None
        and turn is not None
        and grant.used_by == call.turn_id
        and (grant.session_key, grant.tool) == (turn.session_key, call.name)
        and grant.arguments_hash == hash_of(grant.arguments or ""),
        f"{key_of(call)} ({call.name}) ran without a grant",
        history.story(call.turn_id),
    )
