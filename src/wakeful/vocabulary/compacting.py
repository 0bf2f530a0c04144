"""When a conversation is compacted into a summary, and how much of it stays."""

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

NO_WISH = "Compact the older part of this conversation into a summary."  # asked without a wish
FLUSH_PROMPT = (
    "The older part of this conversation will soon be compacted into a summary. Write down now, "
    "with memory_write, what you will want to know later and have not written yet: facts, wishes, "
    "decisions, open promises. Then answer exactly NO_REPLY."
)


class MemoryFlush(Record):
    """A silent turn before a compaction, in which the agent writes its memories."""

    enabled: bool = True
    soft_threshold_tokens: int = 4_000  # before the reserve begins
    prompt: str = FLUSH_PROMPT
    system_prompt: str = ""  # added to the agent's own for that turn


class CompactionRules(Record):
    """How an agent's conversations are kept within its model's window."""

    enabled: bool = True
    reserve_tokens: int = 16_384  # left free for the answer
    reserve_tokens_floor: int = 20_000  # at least; never more than a quarter of the window
    keep_recent_tokens: int = 20_000  # stays word for word
    memory_flush: MemoryFlush = MemoryFlush()


def checked(rules: CompactionRules) -> CompactionRules:
    """Return the rules, or refuse a flush that would ask nothing: it could not be filed."""
    if not rules.memory_flush.prompt.strip():
        raise InvalidInput("compaction.memory_flush.prompt", "must not be blank")
    return rules
