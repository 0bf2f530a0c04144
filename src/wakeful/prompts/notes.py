"""Notes: the runtime's own sentences inside a conversation."""

from collections.abc import Sequence

from wakeful.vocabulary.stimulus import KeptAttachment
from wakeful.vocabulary.text import one_line

COLLECTED_HEADING = "[Queued messages while agent was busy]"
STOPPED = "[The last turn was stopped before it was finished.]"
REMEMBER = (
    "[The older part of this conversation is about to be compacted into a summary. First write "
    "down, with memory_write, what you will want to know later and have not written yet: facts, "
    "wishes, decisions, open promises. Then go on with what you were doing; do not mention this.]"
)
REMEMBER_WHAT_IS_LEFT = (
    "[This conversation was too long for you, so its older part has just been compacted into the "
    "summary above. First write down, with memory_write, what of it you will want to know later "
    "and have not written yet. Then go on with what you were doing; do not mention this.]"
)
LONGEST_SOURCE = 80
FAILED = "[The last turn failed before it was done; people were told why.]"
LONGEST_QUOTE = 160  # characters by which a message is recognised
SKIPPED = "skipped: a new message arrived"
SKIPPED_STOP = "skipped: the turn was ended before this call began"
UNKNOWN = "interrupted, outcome unknown"
GONE = "tool no longer available"


def collected(number: int, text: str) -> str:
    """Return one message of several that waited, as part of the prompt they become."""
    heading = f"{COLLECTED_HEADING}\n\n" if number == 1 else ""
    return f"{heading}---\nQueued #{number}\n{text}"


def still_to_do(messages: Sequence[str]) -> str:
    """Tell which messages, all of them seen before, are still to be worked on."""
    named = "".join(f"\n- {one_line(message, LONGEST_QUOTE)}" for message in messages)
    return (
        "[Your work on the following was interrupted by something more urgent. "
        f"It is still to do: go on from where you were.]{named}"
    )


def overflow(count: int, lines: Sequence[str]) -> str:
    noun = "message" if count == 1 else "messages"
    listed = "".join(f"\n- {line}" for line in lines)
    return f"[Queue overflow] Dropped {count} {noun} due to cap.{listed}"


def overheard(lines: Sequence[tuple[str, str]]) -> str:
    """Tell what others said to each other, each line with who said it."""
    said = "".join(f"\n- {one_line(source, LONGEST_SOURCE)}: {text}" for source, text in lines)
    return f"[Said in this room since your last turn there, to others:]{said}"


def attached(attachments: Sequence[KeptAttachment]) -> str:
    """Return a line for each attachment: its id, and what its sender calls it."""
    return "".join(
        f"\n[attachment {item.id}: {item.name} ({item.media_type}, {item.size} bytes)]"
        for item in attachments
    )


def not_shown(attachment: KeptAttachment, why: str) -> str:
    """Say why the model sees no more of an attachment; its name may be a stranger's words."""
    return f"[attachment {attachment.id} is not shown: {why}]"


def refused(attachments: Sequence[KeptAttachment], sentence: str) -> str:
    """Say what is left out from here on because the provider did not take it."""
    named = ", ".join(item.id for item in attachments)
    noun = "attachment" if len(attachments) == 1 else "attachments"
    return f"[The provider did not take the {noun} {named}, left out from here on: {sentence}]"
