"""`budget show`, `budget raise`, `usage`: what agents may spend, and what they did."""

from typing import Annotated, Any

import typer

from wakeful.cli.agent_lines import raise_command
from wakeful.cli.context import CliContext
from wakeful.cli.output import safe
from wakeful.cli.times import coming, money, past
from wakeful.views.usage import UsageBy
from wakeful.vocabulary.errors import InvalidInput

Agent = Annotated[str, typer.Option("--agent", help="Whose budget.")]
Amount = Annotated[float, typer.Argument(min=0, help="How many US dollars more.")]
MoreTurns = Annotated[int, typer.Option("--turns", min=0, help="How many turns more.")]
Source = Annotated[str, typer.Option("--source", help="Whose share of it, a token's name.")]
Origin = Annotated[
    str, typer.Option("--origin", help="What only heartbeat, tick or another origin may use of it.")
]
By = Annotated[UsageBy, typer.Option("--by", help="Which sums.")]
Since = Annotated[str, typer.Option("--since", help="From when on: 24h, 7d, or 2026-01-01.")]
Until = Annotated[
    str, typer.Option("--until", help="Until 18:00, or for 2h; not said: until the day ends.")
]


def show(context: CliContext, agent: Agent = "") -> None:
    """Show what is left of the budgets today, and who waits for more."""
    page = context.reader().get("/api/budgets", **({"agent": agent} if agent else {}))
    rows = [_row(context, one) for one in page["items"]]
    head = ["agent", "of what", "spent", "set aside", "cap", "turns", "waiting", "anew"]
    lines = context.out.table(head, rows)
    waits = (one for one in page["items"] if one["parked"])
    lines += [
        f"{command} lets what waits go on" for command in {raise_command(x): 0 for x in waits}
    ]
    context.out.data(page, lines)


def increase(
    context: CliContext,
    amount: Amount = 0.0,
    agent: Agent = "main",
    turns: MoreTurns = 0,
    until: Until = "",
    source: Source = "",
    origin: Origin = "",
) -> None:
    """Raise today's budget; what waited for it goes on."""
    if not amount and not turns:
        raise InvalidInput("amount", "must be above 0, such as 1.00, or --turns must be")
    if source and origin:
        raise InvalidInput("source", "and --origin name two limits; raise one after the other")
    body: dict[str, Any] = {"agent": agent, "money": amount, "turns": turns}
    if source or origin:
        body["scope"] = f"source:{source}" if source else f"origin:{origin}"
    if until:
        body["until"] = coming(until, "until", context.clock.now(), context.zone)
    raised = context.needed_server().post("/api/budgets/raise", body)
    spent, most = raised["money"]["cap"], raised["turns"]["cap"]
    left = "any amount" if spent is None else money(spent)
    count = "any number of" if most is None else most
    is_for_today = raised["raised_until"] == raised["resets_at"]
    ends = " today" if is_for_today else f", until {context.when(raised['raised_until'])}"
    waited = f"; {raised['released']} that waited go on" if raised["released"] else ""
    part = source or origin
    who = f"{safe(part)} at {safe(agent)}" if part else safe(agent)
    line = f"{who} may spend {left} and take {count} turns{ends}{waited}"
    context.out.data(raised, [line])


def usage(context: CliContext, by: By = UsageBy.DAY, since: Since = "") -> None:
    """Show what was asked of models, and what it cost, by day, agent, session or source."""
    begin = past(since, "since", context.clock.now(), context.zone) if since else ""
    page = context.reader().get(
        "/api/usage", by=by.value, limit=200, **({"since": begin} if begin else {})
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
    head = [by.value, "turns", "questions", "tokens read", "written", "cost", "of unknown price"]
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
