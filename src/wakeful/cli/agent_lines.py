"""Agents as people read them: what they do, who rests, what was skipped, what is left to spend."""

import shlex
from collections.abc import Iterator
from typing import Any, cast

from wakeful.cli.context import CliContext
from wakeful.cli.entries import brief
from wakeful.cli.output import counted, safe
from wakeful.cli.times import money

HEAD = ["agent", "model", "state", "next wake", "spent today"]
MOST_ASLEEP = 5  # sessions that are named
NEARLY_SPENT = 0.8  # of a cap: from there on the way to raise it is shown

Shown = dict[str, Any]  # an agent, as the server shows it


def rows(context: CliContext, agents: list[Shown]) -> list[list[object]]:
    """Return a line of a table for each agent."""
    return [
        [
            one["id"],
            one.get("model", ""),
            _state(one),
            context.how_long(one.get("next_wake_at")),
            spent(one["budget"]),
        ]
        for one in agents
    ]


def all_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Show all that is known of an agent: each thing on a line of its own, its parts below it."""
    for name, value in agent.items():
        parts = list(_parts(context, value))
        if parts:
            yield f"{name}:"
            yield from (f"  {part}" for part in parts)
        elif isinstance(value, dict) or value == []:
            yield f"{name}: –"
        else:
            yield f"{name}: {_brief(context, name, value)}"


def _parts(context: CliContext, value: Any) -> Iterator[str]:
    """Return what is known of a thing that has parts, and each of a list of such things."""
    if isinstance(value, dict):
        for name, part in cast("Shown", value).items():
            if part is not None:
                yield f"{name}: {_brief(context, name, part)}"
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, dict) for item in items):
            yield from (safe(brief(item), 400) for item in items)


def _brief(context: CliContext, name: str, value: Any) -> str:
    """Return one thing in few words; times are the user's."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_at") and isinstance(value, str):
        return context.when(value)
    return safe(brief(value), 400)


def rest_lines(context: CliContext, agents: list[Shown]) -> Iterator[str]:
    """Tell who sleeps and why, what was skipped and why, and whose money comes to its end."""
    for agent in agents:
        yield from approval_lines(agent)
        yield from quiet_lines(context, agent)
        yield from sleep_lines(context, agent)
        yield from beat_lines(context, agent)
        yield from skip_lines(context, agent)
        yield from held_lines(context, agent)
        if is_short(agent["budget"]):
            yield budget_line(context, agent["budget"])


def approval_lines(agent: Shown) -> Iterator[str]:
    """Tell that an agent waits for somebody's word."""
    if count := agent.get("approvals"):
        waits = f"{safe(agent['id'])} waits for {counted(count, 'approval')}"
        yield f"{waits}; `wakeful approvals list` shows what it asks"


def quiet_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Tell whether only people and what is urgent wake an agent now."""
    quiet: Shown = agent.get("quiet") or {}
    if quiet.get("is_quiet"):
        until = f"{context.when(quiet['until'])} ({quiet['by']})"
        yield f"{safe(agent['id'])} is quiet until {until}; {quiet_end(agent['id'])}"


def quiet_end(agent_id: str) -> str:
    """Tell what to type to end quiet hours."""
    whose = "" if agent_id == "main" else f" --agent {safe(agent_id)}"
    return f"`wakeful quiet off{whose}` ends it"


def sleep_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Tell which sessions of an agent sleep, until when and why."""
    asleep: list[Shown] = agent.get("sleep") or []
    for one in asleep[:MOST_ASLEEP]:
        why = safe(one["reason"], 200) or "no reason given"
        who = safe(one["session_key"] or agent["id"])
        ends = f"; `wakeful wake {shlex.quote(who)}` ends it" if one["session_key"] else ""
        late = f" (not woken in its time: {safe(one['refused'])})" if one.get("refused") else ""
        yield f"{who} sleeps until {context.when(one['wake_at'])}: {why}{late}{ends}"
    if len(asleep) > MOST_ASLEEP:
        yield f"… and {len(asleep) - MOST_ASLEEP} more sleep"


def beat_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Tell what came of an agent's last heartbeat."""
    beat: Shown = agent.get("heartbeat") or {}
    if beat.get("last_outcome"):
        at, came = context.how_long(beat["last_run_at"]), safe(beat["last_outcome"])
        more = _which_limit(agent, came.partition(":")[2])
        yield f"heartbeat of {safe(agent['id'])}, {at}: {came.replace(':', ', ')}{more}"


def skip_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Tell what else did not wake an agent, and why."""
    who = safe(agent["id"])
    for one in agent.get("skipped") or ():
        if one["origin"] != "heartbeat":
            at, times = context.how_long(one["last_at"]), counted(one["count"], "time")
            came = f"skipped, {safe(one['reason'])} ({times}){_which_limit(agent, one['reason'])}"
            yield f"{safe(one['origin'])} of {who}, {at}: {came}"


def _which_limit(agent: Shown, reason: str) -> str:
    """Tell where to look for a limit of which no other line tells."""
    # Of its day's money and turns one does; else a limit of its own was reached.
    if reason != "budget" or is_short(agent["budget"]):
        return ""
    return "; `wakeful notices` and `wakeful budget show` tell which limit"


def held_lines(context: CliContext, agent: Shown) -> Iterator[str]:
    """Tell what an agent said unasked, and too often, and when it leaves."""
    held: Shown = agent.get("held") or {}
    if held.get("messages"):
        count, at = counted(held["messages"], "message"), context.how_long(held["leaves_at"])
        yield f"{count} of {safe(agent['id'])} held back; a digest leaves {at}"


def is_short(budget: Shown) -> bool:
    """Tell whether something waits for money or turns, or soon will."""
    amounts, turns = budget["money"], budget["turns"]
    shares = ((amounts["spent"], amounts["cap"]), (turns["used"], turns["cap"]))
    return budget["parked"] > 0 or any(_is_nearly(used, cap) for used, cap in shares)


def raise_command(budget: Shown) -> str:
    """Return what to type to raise a budget: its turns, if those come to their end."""
    turns, who = budget["turns"], safe(budget["agent_id"])
    more = "--turns 50" if _is_nearly(turns["used"], turns["cap"]) else "1.00"
    return f"`wakeful budget raise {more} --agent {who}`"


def put_off_hint(context: CliContext, receipt: Shown) -> str:
    """Tell until when a message waits, and what to type so that it does not."""
    agent = safe(receipt["session_key"].split(":")[1])
    helps = {
        "budget": f"`wakeful budget raise 1.00 --agent {agent}` lets it go on",
        "halted": "`wakeful resume` lifts that",
    }.get(receipt.get("reason") or "", "")
    at = f", {context.how_long(receipt['look_at'])}" if receipt.get("look_at") else ""
    return f"it is kept, and answered when that is over{at}" + (f"; {helps}" if helps else "")


def budget_line(context: CliContext, budget: Shown) -> str:
    """Tell what is spent of a day's budget, who waits for more, and how it is raised."""
    who, turns = safe(budget["agent_id"]), budget["turns"]
    used = f"{turns['used']} of {turns['cap']} turns, " if turns["cap"] is not None else ""
    waits = f"{budget['parked']} wait; " if budget["parked"] else ""
    return (
        f"{who} has spent {spent(budget)} today, {used}anew {context.how_long(budget['resets_at'])}"
        f"; {waits}{raise_command(budget)} raises it"
    )


def spent(budget: Shown) -> str:
    """Return what is spent of a day's money."""
    paid, cap = money(budget["money"]["spent"]), budget["money"]["cap"]
    return paid if cap is None else f"{paid} of {money(cap)}"


def server_lines(agents: list[Shown]) -> Iterator[str]:
    """Tell of the MCP servers that are not up, each once."""
    servers = {server["name"]: server for agent in agents for server in agent.get("mcp", [])}
    for name, server in servers.items():
        if server["state"] != "up":
            why = "".join(f": {safe(problem, 200)}" for problem in server["problems"][:1])
            yield f"MCP server {safe(name)} is {server['state']}{why}"


def _is_nearly(used: float, cap: float | None) -> bool:
    return cap is not None and used >= cap * NEARLY_SPENT


def _state(agent: Shown) -> str:
    if agent.get("is_halted"):
        return "halted"
    lanes: dict[str, int] = agent.get("lanes", {})
    parts = [f"{count} {name}" for name, count in lanes.items() if count and name != "idle"]
    return ", ".join(parts) or ("asleep" if agent.get("sleep") else "idle")
