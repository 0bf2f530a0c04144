"""What the demo model does about appointments: it makes them, lists them, and keeps them."""

import json
import re
from datetime import datetime, timedelta
from typing import Any, cast

from wakeful.models.demo_acts import Answer, Say, Task, Use, in_general
from wakeful.vocabulary.spans import is_span, parse_span
from wakeful.vocabulary.text import one_line

LONGEST_NAME = 40
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s*(?P<half>am|pm)?", re.IGNORECASE
)


def appoint(ask: Task) -> Answer:
    """Have something done in a while, or again and again."""
    words = ask.words
    if ask.results and ask.results[-1].name == "schedule":
        return _made(ask)
    when = _when(ask)
    if isinstance(when, str):
        return Use(text=when, calls=(("current_time", {}),))
    if when is None:
        return in_general(ask)
    what = words["what"].strip().rstrip(".!")
    arguments = {
        "action": "add",
        "name": one_line(what, LONGEST_NAME),
        "message": f"Remind me: {what}",
        **when,
    }
    return Use(text="I put it into my calendar.", calls=(("schedule", arguments),))


def list_appointments(ask: Task) -> Answer:
    if not ask.results:
        return Use(text="I look into my calendar.", calls=(("schedule", {"action": "list"}),))
    jobs = cast("list[dict[str, Any]]", json.loads(ask.results[-1].text))
    if not jobs:
        return Say(text='Nothing is scheduled here. Say "remind me every 2 hours to stretch".')
    lines = "\n".join(f"- {job['name']}: {_next(job)}" for job in jobs)
    return Say(text=f"Scheduled in this conversation:\n{lines}")


def cancel_appointment(ask: Task) -> Answer:
    if ask.results:
        return Say(text=f"{ask.words['name'].strip()} is no longer scheduled.")
    name = ask.words["name"].strip().rstrip(".!")
    arguments = {"action": "remove", "automation": name}
    return Use(text="I take it out of my calendar.", calls=(("schedule", arguments),))


def keep_appointment(ask: Task) -> Answer:
    """Do what was scheduled, now that its time has come."""
    return Say(text=f"It is time: {ask.words['what'].strip()}")


def _when(ask: Task) -> dict[str, Any] | str | None:
    """Return when, in the words of the tool; as text, what must be known first; None: unknown."""
    words = ask.words
    if words.get("every_day"):
        clock = _CLOCK.search(words["clock"])
        return None if clock is None else {"expr": _daily(clock, words["every_day"])}
    span = words.get("every") or words.get("in") or ""
    span = span if re.match(r"\d|an?\b", span) else f"1 {span}"
    if not is_span(span):
        return None
    if words.get("every"):
        return {"every_s": parse_span(span, "span") // 1000}
    if not ask.results:
        return "I look at the clock."
    now = datetime.fromisoformat(ask.results[0].text.split(" ")[0])
    at = now + timedelta(milliseconds=parse_span(span, "span"))
    return {"at": at.isoformat()}


def _daily(clock: "re.Match[str]", days: str) -> str:
    hour, minute = int(clock["hour"]) % 24, int(clock["minute"] or 0)
    if clock["half"]:
        hour = hour % 12 + (12 if clock["half"].lower() == "pm" else 0)
    return f"{min(minute, 59)} {hour} * * {'1-5' if days.lower().startswith('week') else '*'}"


def _made(ask: Task) -> Answer:
    job = cast("dict[str, Any]", json.loads(ask.results[-1].text))
    return Say(text=f"Scheduled: {job['name']}. {_next(job)}.")


def _next(job: dict[str, Any]) -> str:
    due = cast("list[str]", job.get("next_runs") or [])
    return f"next at {due[0]}" if due else str(job.get("disabled_reason") or "never again")
