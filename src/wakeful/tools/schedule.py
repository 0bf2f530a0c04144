"""`schedule`: appointments of a conversation, made and kept by its agent."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from wakeful.automations import jobs, schedules
from wakeful.automations.acts import AutomationActs, NameTaken
from wakeful.automations.wishes import Edits, Maker, Wish
from wakeful.tools.tool import Effect, LedgerContext, tool
from wakeful.vocabulary import wall
from wakeful.vocabulary.automation import (
    AgentTurn,
    AtSchedule,
    Automation,
    CronSchedule,
    EverySchedule,
    Schedule,
)
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.kinds import Limit
from wakeful.vocabulary.text import one_line

NEXT_SHOWN = 5
LONGEST_SHOWN = 200  # characters of a message, in a list
LONGEST_NAME = 60  # of one that is made of its message

Action = Literal["add", "list", "update", "pause", "resume", "remove", "next"]
# Where an answer goes is not the tool's business: in this conversation, where people are by then.
_THEIR_NAMES = {
    "job_id": "automation",
    "id": "automation",
    "every_seconds": "every_s",
    "cron_expr": "expr",
    "cron": "expr",
    "deliver": None,
}


# Each is a word of the tool; a model names the few it needs.
@tool(effect=Effect.LEDGER, aliases=_THEIR_NAMES)
def schedule(  # noqa: PLR0913, PLR0917
    context: LedgerContext,
    action: Action,
    message: str = "",
    name: str = "",
    at: str = "",
    every_s: int = 0,
    expr: str = "",
    tz: str = "",
    automation: str = "",
    delete_after_run: bool = False,
) -> str:
    """Let something be done in this conversation later, once or again and again.

    `add`: `message` is what you are told then; say when by one of `at` (ISO time, e.g.
    2026-01-31T09:00), `every_s` (seconds) or `expr` (five cron fields, with an IANA `tz` if not
    the user's). `list` shows what there is, `next` when it is due. `update`, `pause`, `resume`
    and `remove` take the name or id in `automation`.
    """
    when = _schedule(at, every_s, expr, tz)
    try:
        said = _done(
            context, action, message, name, when, automation, delete_after_run=delete_after_run
        )
    except NameTaken as taken:  # perhaps in a conversation of which this one knows nothing
        own = {job.id for job in _own(context)}
        raise NameTaken(taken.name, [one for one in taken.ids if one in own]) from None
    return msgspec.json.encode(said).decode()


# As above: words of a model.
def _done(
    context: LedgerContext,
    action: Action,
    message: str,
    name: str,
    when: Schedule | None,
    automation: str,
    *,
    delete_after_run: bool,
) -> Any:
    match action:
        case "add":
            return _add(context, message, name, when, delete_after_run=delete_after_run)
        case "list":
            return [_shown(context, job) for job in _own(context)]
        case "next":
            found = [_named(context, automation)] if automation else _own(context)
            return [{"name": job.name, "next_runs": _next(context, job)} for job in found]
        case "update":
            job = _named(context, automation)
            edits = Edits(
                name=name or UNSET,
                message=message or UNSET,
                schedule=UNSET if when is None else when,
            )
            return _shown(
                context, _acts(context).edit_in(context.tx, job.id, edits, _maker(context))
            )
        case "pause" | "resume" | "remove":
            return _act(context, action, _named(context, automation))


def _add(
    context: LedgerContext,
    message: str,
    name: str,
    when: Schedule | None,
    *,
    delete_after_run: bool,
) -> dict[str, Any]:
    acts, tx = _acts(context), context.tx
    if context.turn.kind.rule.limit is Limit.JOB and not acts.limits.from_automations:
        raise InvalidInput("action", "an automation makes no others: people, or other turns, do")
    if when is None:
        raise InvalidInput("at", "say when: at, every_s or expr")
    wish = Wish(
        name=name or one_line(message, LONGEST_NAME),
        schedule=when,
        message=message,
        session_key=context.session.key,
        delete_after_run=delete_after_run,
    )
    maker = _maker(context)
    job = acts.built(wish, maker, context.ids.new("job"), tx.now)
    return _shown(context, acts.add_in(tx, job, maker))


def _act(context: LedgerContext, action: Action, job: Automation) -> dict[str, Any]:
    acts, maker = _acts(context), _maker(context)
    do = {"pause": acts.pause_in, "resume": acts.resume_in, "remove": acts.remove_in}[action]
    done = do(context.tx, job.id, maker)
    return {"removed": done.name} if action == "remove" else _shown(context, done)


def _acts(context: LedgerContext) -> AutomationActs:
    assert context.automations is not None
    return context.automations


def _maker(context: LedgerContext) -> Maker:
    """Return whose it is: of whoever owns this conversation, trusted as this turn is."""
    turn = context.turn
    return Maker(
        owner=context.session.owner,
        trust=turn.trust,
        name=f"agent {turn.agent_id}",
        is_person=turn.for_people,
        cause_id=turn.id,
        is_agent=True,
    )


def _own(context: LedgerContext) -> Sequence[Automation]:
    """Return the automations of this conversation: for this tool there are no others."""
    return jobs.bound_to(context.tx, context.session.key)


def _named(context: LedgerContext, words: str) -> Automation:
    own = _own(context)
    found = [job for job in own if job.id == words] or [job for job in own if job.name == words]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(job.id for job in found)
        raise InvalidInput("automation", f"{words[:80]!r} could mean several: {ids}")
    names = ", ".join(repr(job.name) for job in own) or "there are none"
    raise InvalidInput("automation", f"no automation {words[:80]!r} in this conversation: {names}")


def _schedule(at: str, every_s: int, expr: str, tz: str) -> Schedule | None:
    given = [word for word in (at, every_s, expr) if word]
    if len(given) > 1:
        raise InvalidInput("at", "say when by one of at, every_s and expr")
    if tz and not expr:
        raise InvalidInput("tz", "only with expr; a time may carry its own distance from UTC")
    if at:
        return AtSchedule(at=at)
    if every_s:
        return EverySchedule(every_s=every_s)
    return CronSchedule(expr=expr, tz=tz or None) if expr else None


def _shown(context: LedgerContext, job: Automation) -> dict[str, Any]:
    message = job.payload.message if isinstance(job.payload, AgentTurn) else job.payload.text
    shown: dict[str, Any] = {
        "id": job.id,
        "name": job.name,
        "schedule": job.schedule,
        "message": one_line(message, LONGEST_SHOWN),
        "enabled": job.enabled,
        "next_runs": _next(context, job, 1),
    }
    for field in ("disabled_reason", "last_status"):
        if (value := getattr(job, field)) is not None:
            shown[field] = value
    return shown


def _next(context: LedgerContext, job: Automation, count: int = NEXT_SHOWN) -> list[str]:
    if not job.enabled:
        return []
    zone = _acts(context).zone
    due = schedules.upcoming(job.schedule, context.tx.now, count)
    return [wall.local(at, zone).isoformat(timespec="seconds") for at in due]
