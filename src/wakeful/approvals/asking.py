"""Ask people: one row, one timer and one event, in the commit of the call that asks."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from wakeful.approvals import approvals
from wakeful.approvals.approvals import Approval
from wakeful.broker import lane_rows
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turns.turns import Turn
from wakeful.vocabulary.approving import ApprovalKind, ApprovalState, ExpiryDefault, ToolPermission
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record

TIMER_KIND = "approval"


class Asker(Record):
    """The turn that asks, and what its commit gives it to do so."""

    tx: Tx
    ids: Ids
    turn: Turn
    publish: Callable[..., None]  # publish(kind, **data): an event of this turn


def ask_for_call(
    asker: Asker, tool: str, arguments: Mapping[str, Any], permission: ToolPermission
) -> Approval:
    """Ask whether a call may run; one that waits already for the same call is returned."""
    canonical = approvals.canonical(arguments)
    arguments_hash = approvals.hash_of(canonical)
    known = approvals.same_call(asker.tx, asker.turn.session_key, tool, arguments_hash)
    if known is not None:
        return known
    asked = _new(asker, ApprovalKind.TOOL, permission)
    return _keep(
        asker,
        msgspec.structs.replace(
            asked, tool=tool, arguments=canonical, arguments_hash=arguments_hash
        ),
    )


def ask_question(asker: Asker, question: str, permission: ToolPermission) -> Approval:
    """Ask people something; what they say next in this session is the answer."""
    asked = _new(asker, ApprovalKind.QUESTION, permission)
    lane = lane_rows.get(asker.tx, asker.turn.session_key)
    assert lane is not None
    # What was said before the question does not answer it, though it is read after it.
    return _keep(asker, msgspec.structs.replace(asked, question=question, after_seq=lane.seq))


def timer_id(approval_id: str) -> str:
    return f"{TIMER_KIND} {approval_id}"


def event_data(approval: Approval, by: str | None = None) -> dict[str, object]:
    """Return what the events of an approval tell; never what stands in the call."""
    data: dict[str, object] = {
        "approval_id": approval.id,
        "number": approval.number,
        "expires_at": approval.expires_at,
    }
    if approval.tool is not None:
        data["tool"] = approval.tool
    return data if by is None else {**data, "by": by}


def _new(asker: Asker, kind: ApprovalKind, permission: ToolPermission) -> Approval:
    turn, now = asker.turn, asker.tx.now
    is_call = kind is ApprovalKind.TOOL
    return Approval(
        id=asker.ids.new("ap"),
        number=approvals.next_number(asker.tx),
        kind=kind,
        agent_id=turn.agent_id,
        session_key=turn.session_key,
        turn_id=turn.id,
        state=ApprovalState.OPEN,
        created_at=now,
        expires_at=now + permission.expires_ms,
        on_expiry=permission.default if is_call else ExpiryDefault.DENY,
        trust=turn.trust,
        source=turn.source,
        route=turn.route,
        root_id=turn.root_id,
        depth=turn.depth,
        granted=turn.granted,
    )


def _keep(asker: Asker, approval: Approval) -> Approval:
    approvals.add(asker.tx, approval)
    timers.put(
        asker.tx,
        Timer(
            id=timer_id(approval.id),
            due_at=approval.expires_at,
            kind=TIMER_KIND,
            target=approval.session_key,
            payload=msgspec.json.encode({"approval_id": approval.id}).decode(),
        ),
    )
    asker.publish("approval.asked", **event_data(approval))
    return approval
