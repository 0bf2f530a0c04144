"""What an agent reads of its inbox: how much waits there, and each item behind a fence."""

from collections.abc import Sequence

from wakeful.prompts.fence import fenced
from wakeful.vocabulary.spans import format_span
from wakeful.vocabulary.stimulus import Stimulus
from wakeful.vocabulary.text import one_line

# When quiet hours are over and something is held.
DIGEST = (
    "[Quiet hours are over. While they lasted, the following was held for you. Look through it, do "
    "what has to be done, and say what people should know; nothing here waits for an answer.]"
)
EMPTY = "The inbox is empty."
LONGEST_SOURCE = 80


def items_wait(count: int, *, can_look: bool = True) -> str:
    """Say that something waits, to whoever has not asked for it."""
    return f"[{_counted(count)}{_how(can_look=can_look)}]"


def more_wait(count: int, *, can_look: bool = True) -> str:
    """Say how much more waits than was shown."""
    return f"[{_counted(count, 'more ')}{_how(can_look=can_look)}]"


def read_items(items: Sequence[Stimulus], more: int, now: int) -> str:
    """Return what was read of the inbox; nobody can write a line that looks like one of ours."""
    if not items:
        return EMPTY if not more else items_wait(more)
    parts = [_item(item, now) for item in items]
    return "\n\n".join([*parts, more_wait(more)] if more else parts)


def _item(item: Stimulus, now: int) -> str:
    source = one_line(item.source, LONGEST_SOURCE)
    age = format_span(max(0, now - item.accepted_at))
    head = f"{item.id}: {item.priority.name.lower()}, from {source}, {age} ago"
    return f"{head}\n{fenced(item.text, source=source, entry_id=item.id)}"


def _how(*, can_look: bool) -> str:
    """Name the tool that shows what waits, to an agent that has it."""
    return ": check_inbox" if can_look else " in the inbox"


def _counted(count: int, word: str = "") -> str:
    return f"{count} {word}item waits" if count == 1 else f"{count} {word}items wait"
