"""`approvals list`, `show`, `approve`, `deny`: what agents ask before they act, and the answers."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from wakeful.cli.agent_lines import put_off_hint
from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.output import safe, safe_lines
from wakeful.cli.paging import After, Limit
from wakeful.vocabulary.approving import ApprovalDecision, ApprovalState
from wakeful.vocabulary.stimulus import State

Which = Annotated[str, typer.Argument(help="Its number, such as 3, or its id.")]
Note = Annotated[
    str, typer.Option("--note", help="What the agent is told; the answer to a question.")
]
OfState = Annotated[ApprovalState, typer.Option("--state", help="Which of them.")]
Every = Annotated[bool, typer.Option("--all", help="Also what was decided.")]
LONGEST_KEY = 30  # characters of a session in a list
LONGEST = 100  # characters of a call or a question in a list

Shown = dict[str, Any]  # an approval, as the server shows it


def list_(
    context: CliContext,
    state: OfState = ApprovalState.OPEN,
    every: Every = False,
    limit: Limit = 50,
    after: After = None,
) -> None:
    """List what agents wait for, the newest first."""
    query: dict[str, object] = {} if every else {"state": state.value}
    page = context.reader().get("/api/approvals", limit=limit, after=after, **query)
    lines = [line for one in page["items"] for line in _paragraph(context, one)]
    if any(one["state"] == "open" for one in page["items"]):
        lines.append("`wakeful approvals approve NUMBER` lets it go on, `deny` refuses it")
    context.out.data(page, lines or ["nobody waits for an answer"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")


def show(context: CliContext, which: Which) -> None:
    """Show something that was asked, whole."""
    found: Shown = context.reader().get(f"/api/approvals/{segment(which)}")
    context.out.data(found, _lines(context, found))


def approve(context: CliContext, which: Which, note: Note = "") -> None:
    """Let a call run that waits for it, or answer a question."""
    _decide(context, which, ApprovalDecision.APPROVE, note)


def deny(context: CliContext, which: Which, note: Note = "") -> None:
    """Refuse a call that waits for approval, or leave a question without an answer."""
    _decide(context, which, ApprovalDecision.DENY, note)


def what(one: Shown, longest: int = 4_000) -> str:
    """Return what was asked, as a line."""
    if one["kind"] == "question":
        return safe(one["question"], longest)
    arguments = json.dumps(one["arguments"], ensure_ascii=False)
    return safe(f"{one['tool']}({arguments})", longest)


def line_of(one: Shown) -> str:
    """Return what was asked and what became of it, as a line."""
    by = f" by {safe(one['decided_by'], 80)}" if one["decided_by"] else ""
    return f"approval #{one['number']}, {one['state']}{by}: {what(one, LONGEST)}"


def _decide(context: CliContext, which: str, decision: ApprovalDecision, note: str) -> None:
    body = {"decision": decision.value, **({"note": note} if note else {})}
    server = context.needed_server()
    decided = server.post(f"/api/approvals/{segment(which)}", body)
    answer = server.get(f"/api/stimuli/{segment(decided['stimulus_id'])}")
    context.out.data(decided, [line_of(decided), *_prospect(context, decided, answer)])


def _prospect(context: CliContext, decided: Shown, answer: Shown) -> list[str]:
    """Tell who has decided what happens next."""
    if answer["state"] == State.PARKED:
        return [put_off_hint(context, {**answer, "reason": answer["state_reason"]})]
    if decided["kind"] == "question" or decided["state"] != "granted":
        return []
    session = safe(decided["session_key"])
    return [f"it runs now, in {session}; `wakeful sessions show {session}` tells the end of it"]


def _paragraph(context: CliContext, one: Shown) -> list[str]:
    is_open = one["state"] == "open"
    ends = f", expires {context.how_long(one['expires_at'])}" if is_open else f", {one['state']}"
    asked = f"asked {context.how_long(one['created_at'])}{ends}"
    return context.out.paragraph(
        f"#{one['number']} {safe(one['session_key'], LONGEST_KEY)}, {asked}", what(one, LONGEST)
    )


def _lines(context: CliContext, one: Shown) -> Iterator[str]:
    yield f"#{one['number']} ({one['id']}): {one['state']}"
    yield f"asked {context.when(one['created_at'])} in {safe(one['session_key'])}"
    yield f"why: `wakeful why {one['turn_id']}`"
    if one["kind"] == "question":
        yield safe_lines(one["question"])
    else:
        yield f"tool {safe(one['tool'], 80)}, with"
        yield safe_lines(json.dumps(one["arguments"], ensure_ascii=False, indent=2))
    if one["decided_at"]:
        by = safe(one["decided_by"] or "nobody", 80)
        yield f"{one['state']} {context.when(one['decided_at'])} by {by}"
    else:
        yield f"expires {context.when(one['expires_at'])}"
    if one["note"]:
        yield f"note: {safe_lines(one['note'])}"
    if one["used_at"]:
        yield f"ran {context.when(one['used_at'])}"
