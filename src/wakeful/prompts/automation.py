"""What an agent is told when an automation is due, and what its session keeps of it."""

import hashlib
from datetime import tzinfo
from typing import Any

from wakeful.prompts.fence import fenced
from wakeful.vocabulary import wall
from wakeful.vocabulary.automation import TEMPLATE, TEMPLATE_VERSION, AutomationRun, PromptRef
from wakeful.vocabulary.record import Record

# Version 1 of `cron.agent_turn.reminder`. Whoever changes a word of it raises the version.
_TEMPLATE = """\
[Scheduled automation: {name}]
It was due at {scheduled_at}. Nobody is waiting at a keyboard: do what it says now, with your \
tools where they help, and answer with what the people in this conversation should read. Do not \
ask whether to begin, and do not schedule it again. If there is nothing to report, reply NO_REPLY.

{message}"""

# Why runs fail, in the words that people are told.
MODEL, LIMIT, TIME_OUT, INTERNAL = "model", "limit", "time-out", "internal"
_OUR_OWN = frozenset({"internal", "poisoned"})


class RenderedPrompt(Record):
    """A prompt, what it was made of, and by which it is named."""

    text: str
    variables: dict[str, Any]
    ref: PromptRef


def rendered(
    run: AutomationRun, message: str, zone: tzinfo | None, *, is_external: bool
) -> RenderedPrompt:
    """Return the prompt of one run; what somebody outside wrote stays inside a fence."""
    at = wall.local(run.scheduled_at, zone).isoformat(timespec="seconds")
    variables = {"name": run.job_name, "message": message, "scheduled_at": at}
    shown = dict(variables)
    if is_external:
        said = f"{run.job_name}\n\n{message}"
        shown["name"] = "(of somebody outside)"
        shown["message"] = fenced(said, source="an automation", entry_id=run.id)
    text = _TEMPLATE.format(**shown)
    digest = hashlib.sha256(text.encode()).hexdigest()
    ref = PromptRef(id=TEMPLATE, version=TEMPLATE_VERSION, sha256=digest)
    return RenderedPrompt(text=text, variables=variables, ref=ref)


def trigger_text(name: str, message: str) -> str:
    """Return the line that the session keeps, readable for people and later turns."""
    return f"Scheduled automation triggered: {name}\n\n{message}"


def nothing_to_report(name: str) -> str:
    return f'Automation "{name}" finished with nothing to report.'


def failed(name: str, why: str) -> str:
    """Return the closure of a run that failed; the record has the details."""
    return f'Automation "{name}" failed ({why}).'


def why_failed(error_kind: str | None, *, is_out_of_time: bool) -> str:
    """Return why a run failed, as people are told."""
    if is_out_of_time:
        return TIME_OUT
    if error_kind is None or error_kind in _OUR_OWN:
        return INTERNAL
    return LIMIT if error_kind == "limit" else MODEL
