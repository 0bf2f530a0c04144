"""Automations and their runs as people read them, in lines that 80 columns hold."""

import json
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.cli.context import CliContext
from wakeful.cli.output import WIDTH, safe, safe_lines
from wakeful.cli.times import duration, moment, money, shown
from wakeful.vocabulary.spans import format_span, parse_span

LONGEST_NAME = 28  # characters of it in a list
LONGEST_MESSAGE = 2_000

Shown = dict[str, Any]  # an automation or a run, as the server shows it


def job_paragraph(context: CliContext, job: Shown) -> list[str]:
    """Return an automation in two lines: its state, and what is done when and where."""
    parts = [state_of(job)]
    if job["next_run_at"] is not None:
        parts.append(f"next {context.how_long(job['next_run_at'])}")
    if job["last_status"] is not None:
        parts.append(f"last {job['last_status']} {context.how_long(job['last_run_at'])}")
    head = f"{safe(job['name'], LONGEST_NAME)}: {', '.join(parts)}"
    return context.out.paragraph(head, f"{schedule_of(context, job)}, in {job['session_key']}")


def job_lines(context: CliContext, job: Shown) -> Iterator[str]:
    """Tell what an automation does, when next, and what came of it."""
    yield f"  {job['id']}: {state_of(job)}"
    yield f"  {schedule_of(context, job)}"
    yield f"  in {safe(job['session_key'], WIDTH - 5)}"
    if job["description"]:
        yield f"  {safe(job['description'], WIDTH - 2)}"
    if job["running_since"] is not None:
        yield f"  it runs since {context.when(job['running_since'])}"
    for number, at in enumerate(job["next_runs"]):
        yield f"  {'      ' if number else 'next: '}{_on_its_clocks(context, job, at)}"
    if job["last_status"] is not None:
        took = duration((job["last_duration_ms"] or 0) / 1000)
        ended = f"{job['last_status']}, {context.when(job['last_run_at'])}, took {took}"
        yield f"  last: {ended}"
        yield f"        {job['last_run']}"
    payload = job["payload"]
    said = payload.get("message") or payload.get("text") or ""
    yield f"  {'says' if 'message' in payload else 'tells'}: {safe(said, WIDTH - 10)}"


def run_paragraph(context: CliContext, run: Shown) -> list[str]:
    """Return a run in two lines: its id, and what came of it."""
    parts = [f"{_outcome(run)}, due {context.when(run['scheduled_at'])}"]
    parts += [f"for {run['count']} occurrences"] if run["count"] > 1 else []
    parts += [f"took {_length(run)}"] if run["ended_at"] and run["started_at"] else []
    parts += [f"answer {run['delivery']}"] if run["delivery"] != "none" else []
    return context.out.paragraph(run["run_id"], ", ".join(parts))


def run_lines(context: CliContext, run: Shown) -> Iterator[str]:
    """Tell of a run all that its record has."""
    yield f"{run['run_id']}: {_outcome(run)}"
    yield f"of {safe(run['job_name'])}, in {safe(run['session_key'])}"
    late = f", {format_span(run['late_ms'])} late" if run["late_ms"] >= 1000 else ""
    yield f"due {context.when(run['scheduled_at'])} ({run['trigger']}{late})"
    if run["started_at"] is not None:
        yield f"began {context.when(run['started_at'])}, tries: {run['attempts']}"
    if run["ended_at"] is not None:
        yield f"ended {context.when(run['ended_at'])}"
    if run["count"] > 1:
        yield f"stands for {run['count']} occurrences"
    cost = "" if run["cost"] is None else f", cost {money(run['cost'])}"
    yield f"answer: {_answer(run)}{cost}"
    if run["turn_id"] is not None:
        yield f"`wakeful why {run['turn_id']}` tells of its turn"
    if run["error"]:
        yield f"error: {safe(run['error'], LONGEST_MESSAGE)}"
    if run["traceback"]:
        yield safe_lines(run["traceback"])
    if run["prompt_ref"] is not None:
        ref = run["prompt_ref"]
        yield f"told by {ref['id']}, version {ref['version']}, with"
        yield safe_lines(json.dumps(run["prompt_variables"], ensure_ascii=False, indent=2))
        yield "told the agent:"
        yield safe_lines(run["rendered_prompt"] or "")


def state_of(job: Shown) -> str:
    """Tell in a word or two whether an automation is on, and if not, why."""
    if job["running_since"] is not None:
        return "running"
    if job["enabled"]:
        return "on"
    words = {"failures": "off after failures"}
    return words.get(job["disabled_reason"], str(job["disabled_reason"]))


def schedule_of(context: CliContext, job: Shown) -> str:
    """Tell when an automation is due."""
    schedule: Shown = job["schedule"]
    match schedule["kind"]:
        case "every":
            return f"every {_interval(schedule['every_s'])}"
        case "at":
            return f"once, {context.when(schedule['at'])}"
        case _:
            return f"cron {safe(schedule['expr'])} ({safe(schedule['tz'] or 'your clocks')})"


def _interval(seconds: int) -> str:
    """Return an interval as people say it, if that is all of it."""
    said = format_span(seconds * 1000)
    return said if parse_span(said, "every") == seconds * 1000 else f"{seconds}s"


def _on_its_clocks(context: CliContext, job: Shown, at: str) -> str:
    name = job["schedule"].get("tz")
    return shown(at, ZoneInfo(name) if name else context.zone)


def _outcome(run: Shown) -> str:
    reason = f" ({safe(run['reason'], 80)})" if run["reason"] else ""
    return f"{run['state']}{reason}"


def _answer(run: Shown) -> str:
    """Tell where the answer of a run is: what is sent nowhere is read where it was given."""
    if run["delivery"] != "none":
        return str(run["delivery"])
    if run["turn_id"] is None:
        return "none"
    return "in its session" if run["ended_at"] is not None else "not yet"


def _length(run: Shown) -> str:
    began, ended = moment(run["started_at"]), moment(run["ended_at"])
    return duration((ended - began).total_seconds())
