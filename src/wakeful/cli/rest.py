"""`sleep`, `wake`, `heartbeat`, `quiet`: let a session rest, end its rest, look after things."""

from typing import Annotated, Any

import typer

from wakeful.cli.agent_lines import quiet_end
from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.look import SessionName
from wakeful.cli.output import safe
from wakeful.cli.session_names import session_path
from wakeful.cli.times import coming
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import format_span, leading_span

Span = Annotated[
    str, typer.Argument(help="For how long: 90s, 30m, 2h, 2 hours; a minute to a day.")
]
Reason = Annotated[
    list[str] | None, typer.Argument(help="What it waits for; it reads this when it wakes.")
]
OTHER_LENGTH = (
    "(not what you said: a sleep lasts a minute to a day, and ends before the model's prompt "
    "cache does or long after, unless `proactive.cache_aware_schedule` is false)"
)
WHY_NOT = {
    "awake": "it is awake",
    "halted": "its agent is halted; `wakeful resume` lifts that",
    "budget": "its agent's budget is used up; `wakeful budget show` tells which, "
    "`wakeful budget raise` raises it",
}
NO_BEAT = {
    "asleep": "it sleeps; `wakeful wake` ends that",
    "disabled": "it is off; `wakeful heartbeat on` turns it on",
    "halted": WHY_NOT["halted"],
    "budget": WHY_NOT["budget"],
}
HEARTBEAT_ACTIONS = ("on", "off", "now")


def sleep(context: CliContext, session: SessionName, span: Span, reason: Reason = None) -> None:
    """Let a session rest for a while, or until somebody needs it."""
    requested_ms, why = leading_span([span, *(reason or ())], "span")
    body = {"seconds": max(1, requested_ms // 1000), "reason": " ".join(why)}
    entered = context.needed_server().post(f"{session_path(session)}/sleep", body)
    rests, until = format_span(entered["final_ms"]), context.when(entered["wake_at"])
    why = f" {OTHER_LENGTH}" if entered["final_ms"] != entered["requested_ms"] else ""
    context.out.data(entered, [f"{safe(session)} sleeps for {rests}, until {until}{why}"])


def wake(context: CliContext, session: SessionName) -> None:
    """End a session's sleep."""
    woken: dict[str, Any] = context.needed_server().post(f"{session_path(session)}/wake")
    if woken["woken"]:
        line = f"{safe(session)} was woken after {format_span(woken['slept_ms'])}"
    else:
        why = safe(woken["reason"])
        line = f"{safe(session)} was not woken: {WHY_NOT.get(why, why)}"
    context.out.data(woken, [line])


def heartbeat(
    context: CliContext,
    action: Annotated[str, typer.Argument(help="on, off or now; without it, show.")] = "",
    agent: Annotated[str, typer.Argument(help="Whose.")] = "main",
) -> None:
    """Show when an agent looks after things by itself, turn that on or off, or ask for it now."""
    at = f"/api/agents/{segment(agent)}"
    found: dict[str, Any]
    if not action:
        found = context.reader().get(at)["heartbeat"]
    elif action in HEARTBEAT_ACTIONS:
        found = context.needed_server().post(f"{at}/heartbeat", {"action": action})
    else:
        raise InvalidInput("action", f"must be nothing, on, off or now, not {action[:40]!r}")
    if "outcome" in found:
        reason: str = found.get("reason") or ""
        line = f"a heartbeat of {safe(agent)} comes at once"
        if found["outcome"] == "suppressed":
            line = f"no heartbeat of {safe(agent)}: {NO_BEAT.get(reason, safe(reason))}"
    elif found["enabled"]:
        due = context.how_long(found["next_due_at"])
        line = f"the heartbeat of {safe(agent)} is on, every {found['every']}; the next {due}"
    else:
        line = f"the heartbeat of {safe(agent)} is off"
    context.out.data(found, [line])


def quiet(
    context: CliContext,
    action: Annotated[str, typer.Argument(help="until, for or off; without it, show.")] = "",
    time: Annotated[
        list[str] | None,
        typer.Argument(help="Such as 7:00 or 2026-01-01T07:00; for 2h, or 2 hours."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", help="Whose quiet hours.")] = "main",
) -> None:
    """Show whether an agent is quiet, keep it quiet until a time, or end that."""
    at = f"/api/agents/{segment(agent)}/quiet"
    found: dict[str, Any]
    said = " ".join(time or ())
    if not action:
        found = context.reader().get(at)
    elif (action == "off" and not said) or (action in ("until", "for") and said):
        until = coming(said, "until", context.clock.now(), context.zone) if said else None
        found = context.needed_server().put(at, {"until": until})
    else:
        raise InvalidInput(
            "action", "must be nothing, until TIME, for SPAN or off, such as until 7:00 or for 2h"
        )
    line = f"{safe(agent)} is not quiet"
    if found["is_quiet"]:
        until = f"{context.when(found['until'])} ({found['by']})"
        line = f"{safe(agent)} is quiet until {until}; {quiet_end(agent)}"
    context.out.data(found, [line])
