"""`budget show`, `budget raise`, `usage`: what agents may spend, and what they did."""

from typing import Annotated, Any

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.output import safe
from wakeful.cli.times import money

Agent = Annotated[str, typer.Option("--agent", help="Whose budget.")]
Amount = Annotated[float, typer.Argument(min=0, help="How many US dollars more.")]
MoreTurns = Annotated[int, typer.Option("--turns", min=0, help="How many turns more.")]
By = Annotated[str, typer.Option("--by", help="day, agent, session or source.")]
Since = Annotated[str, typer.Option("--since", help="From when on, such as 2026-01-01T00:00Z.")]
Until = Annotated[str, typer.Option("--until", help="Until when; not said: until the day ends.")]


def show(context: CliContext, agent: Agent = "") -> None:
    """Show what is left of the budgets today, and who waits for more."""
    page = context.needed_server().get("/api/budgets", **({"agent": agent} if agent else {}))
    rows = [_row(context, one) for one in page["items"]]
    head = ["agent", "of what", "spent", "set aside", "cap", "turns", "waiting", "anew"]
    lines = context.out.table(head, rows)
    if any(one["parked"] for one in page["items"]):
        lines.append("`wakeful budget raise 1.00` lets what waits go on")
    context.out.data(page, lines)


def increase(
    context: CliContext,
    amount: Amount = 0.0,
    agent: Agent = "main",
    turns: MoreTurns = 0,
    until: Until = "",
) -> None:
    """Raise today's budget; what waited for it goes on."""
    body: dict[str, Any] = {"agent": agent, "money": amount, "turns": turns}
    if until:
        body["until"] = until
    raised = context.needed_server().post("/api/budgets/raise", body)
    left = "any amount" if raised["money"]["cap"] is None else money(raised["money"]["cap"])
    waited = f"; {raised['released']} that waited go on" if raised["released"] else ""
    line = f"{safe(agent)} may spend {left} today{waited}"
    context.out.data(raised, [line])


def usage(context: CliContext, by: By = "day", since: Since = "") -> None:
    """Show what was asked of models, and what it cost, by day, agent, session or source."""
    page = context.reader().get(
        "/api/usage", by=by, limit=200, **({"since": since} if since else {})
    )
    rows = [
        [
            one["key"],
            one["turns"],
            one["calls"],
            one["input"],
            one["output"],
            money(one["cost"]),
            one["unpriced_calls"] or "",
        ]
        for one in page["items"]
    ]
    head = [by, "turns", "questions", "tokens read", "written", "cost", "of unknown price"]
    context.out.data(page, context.out.table(head, rows) or ["nothing was asked yet"])


def _row(context: CliContext, one: dict[str, Any]) -> list[object]:
    spent, turns = one["money"], one["turns"]
    unpriced = f" + {spent['unpriced_calls']} unpriced" if spent["unpriced_calls"] else ""
    cap = "–" if spent["cap"] is None else money(spent["cap"])
    return [
        one["agent_id"],
        one["scope"],
        money(spent["spent"]) + unpriced,
        money(spent["reserved"]),
        cap,
        turns["used"] if turns["cap"] is None else f"{turns['used']} of {turns['cap']}",
        one["parked"] or "",
        context.how_long(one["resets_at"]),
    ]
