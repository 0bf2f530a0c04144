"""What a heartbeat asks, and how a task list is told from an empty page."""

import re

FILE = "HEARTBEAT.md"
SOURCE = "heartbeat"  # of those that are due
PROMPT = (
    "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. "
    "Do not infer or repeat old tasks from prior chats. "
    "If nothing needs attention, reply HEARTBEAT_OK."
)

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# A heading, or a list item without words: a task list that has no task yet.
_NO_TASK = re.compile(r"\s*(?:#{1,6}(?:\s.*)?|(?:[-*+]|\d{1,9}[.)])?\s*(?:\[[ xX]?\])?\s*)")


def has_tasks(text: str) -> bool:
    """Tell whether a file says anything beyond headings, empty list items and comments."""
    return not all(map(_NO_TASK.fullmatch, _COMMENT.sub("", text).splitlines()))


def system_line(at: str, text: str) -> str:
    """Return an event as the agent reads it."""
    return f"System: [{at}] {text}"


def asked_by(source: str) -> str:
    """Return the source of a heartbeat that somebody asked for: it is not what they said."""
    return f"{SOURCE}:{source}"


def asked_again(source: str) -> str:
    """Say that somebody else asked for the same heartbeat."""
    return f"(This heartbeat was asked for by {source.removeprefix(f'{SOURCE}:')}, too.)"
