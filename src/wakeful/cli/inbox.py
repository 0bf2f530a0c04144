"""`inbox list`, `inbox show`, `inbox add`, `inbox dismiss`: what is left for agents."""

from typing import Annotated, Any

import typer

from wakeful.cli.agent_lines import put_off_hint
from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.output import safe, safe_lines
from wakeful.cli.paging import After, Limit
from wakeful.cli.talk import given_text, receipt_line
from wakeful.cli.times import coming
from wakeful.vocabulary.inbox import PriorityName
from wakeful.vocabulary.stimulus import Outcome

Text = Annotated[str, typer.Argument(help="What to leave; - reads standard input.")]
ItemId = Annotated[str, typer.Argument(help="The item, as `inbox list` names it.")]
Source = Annotated[str, typer.Option("--source", help="Who leaves it, or left it.")]
Floor = Annotated[PriorityName, typer.Option("--floor", help="The least urgent that is shown.")]
State = Annotated[str, typer.Option("--state", help="merged, done, expired, cancelled, …")]
Every = Annotated[bool, typer.Option("--all", help="Also what was read or has ended.")]
Urgency = Annotated[
    PriorityName,
    typer.Option(
        "--priority",
        help="now opens a turn at once, next waits for one, later until the agent asks for it.",
    ),
]
DedupKey = Annotated[
    str,
    typer.Option(
        "--dedup-key",
        help="A key that is not taken twice within 5 minutes, or what the source has set.",
    ),
]
AgentName = Annotated[str, typer.Option("--agent", "-a", help="For which agent.")]
SessionName = Annotated[str, typer.Option("--session", "-s", help="Where the source may choose.")]
Expires = Annotated[str, typer.Option("--expires", help="Of no use after 2h, or 18:00.")]

HELD, PARKED = "held", "parked"
LONGEST_SOURCE = 16  # characters of it in a list


def list_(
    context: CliContext,
    source: Source = "",
    floor: Floor = PriorityName.LATER,
    state: State = "",
    every: Every = False,
    limit: Limit = 50,
    after: After = None,
) -> None:
    """List what waits in the inbox, the newest first."""
    query: dict[str, Any] = {"floor": floor.value, "limit": limit, "after": after}
    if source:
        query["source"] = source
    if state or not every:
        query["state"] = state or HELD
    page = context.reader().get("/api/inbox", **query)
    lines = [line for one in page["items"] for line in _paragraph(context, one)]
    context.out.data(page, lines or ["nothing waits in the inbox"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")
    if not state and not every and after is None:
        parked = context.reader().get("/api/inbox", **{**query, "state": PARKED, "limit": 1})
        if parked["items"]:
            context.out.note("urgent items are put off: `wakeful inbox list --state parked`")


def show(context: CliContext, item: ItemId) -> None:
    """Show one item, and what became of it."""
    found: dict[str, Any] = context.reader().get(f"/api/inbox/{segment(item)}")
    left = f"{safe(found['source'])}, {found['priority']}, {context.when(found['created_at'])}"
    lines = [f"{found['id']} of {left}: {_became(context, found)}"]
    if found["expires_at"] is not None:
        lines.append(f"of no use after {context.when(found['expires_at'])}")
    context.out.data(found, [*lines, safe_lines(found["text"])])


# Each is a field of the item; a caller names the few it needs.
def add(  # noqa: PLR0913, PLR0917
    context: CliContext,
    text: Text,
    priority: Urgency = PriorityName.NEXT,
    source: Source = "",
    dedup_key: DedupKey = "",
    agent: AgentName = "",
    session: SessionName = "",
    expires: Expires = "",
) -> None:
    """Leave something for an agent; it is on disk when this returns."""
    given = {"source": source, "dedup_key": dedup_key, "agent": agent, "session": session}
    body: dict[str, Any] = {name: value for name, value in given.items() if value}
    body |= {"text": given_text(text), "priority": priority.value}
    if expires:
        body["expires_at"] = coming(expires, "expires", context.clock.now(), context.zone)
    receipt = context.needed_server().post("/api/inbox", body)
    context.out.data(receipt, [receipt_line(receipt), *_prospect(context, receipt, priority)])


def dismiss(context: CliContext, item: ItemId) -> None:
    """Throw away an item that no turn was given."""
    gone = context.needed_server().post(f"/api/inbox/{segment(item)}/dismiss")
    context.out.data(gone, [f"{gone['id']} of {safe(gone['source'])} was thrown away"])


def _paragraph(context: CliContext, one: dict[str, Any]) -> list[str]:
    state = "" if one["state"] == HELD else f", {one['state']}"
    source, age = safe(one["source"], LONGEST_SOURCE), context.how_long(one["created_at"])
    return context.out.paragraph(
        f"{one['id']}: {one['priority']}, {source}, {age}{state}", one["text"]
    )


def _prospect(context: CliContext, receipt: dict[str, Any], priority: PriorityName) -> list[str]:
    """Tell who leaves something what happens to it next."""
    if receipt["outcome"] == Outcome.PARKED:
        return [put_off_hint(context, receipt)]
    if receipt["outcome"] == Outcome.STARTED:
        return [f"the agent reads it now, in {safe(receipt['session_key'])}"]
    if receipt["outcome"] != HELD:
        return []
    if priority is PriorityName.LATER:
        return ["it waits until the agent asks for all that waits"]
    return ["it waits until the agent looks into its inbox, or has its next turn in Activity"]


def _became(context: CliContext, found: dict[str, Any]) -> str:
    """Say what became of an item."""
    if found["delivered_at"] is None:
        reason = f" ({safe(found['state_reason'])})" if found["state_reason"] else ""
        return f"{found['state']}{reason}"
    when, turn = context.when(found["delivered_at"]), found["delivered_turn_id"]
    return f"{found['state']}, given to {turn} at {when}"
