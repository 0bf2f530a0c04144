"""What the settings say of the inbox, and of each source that writes to it."""

from enum import StrEnum

from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import StormOverrides


class PriorityName(StrEnum):
    """A priority as people write it."""

    NOW = "now"
    NEXT = "next"
    LATER = "later"


class InboxSource(Record):
    """What one source may do."""

    agent: str | None = None  # whose inbox it writes to; None: the first agent's
    session_prefix: str | None = None  # of the sessions that it may name; None: of none
    priority_cap: PriorityName = PriorityName.NOW  # what is more urgent is lowered to this
    depth: int = 1000  # items that may wait
    per_minute: int = 0  # posts; 0: any number
    dedup_window_s: int = 300
    storm: StormOverrides = StormOverrides()


EVERY_SOURCE = InboxSource()  # what holds for one that the settings do not name


class InboxRules(Record):
    """What may be posted to the inbox."""

    max_bytes: int = 65_536  # of one text
    depth: int = 10_000  # items of all sources that may wait
    sources: dict[str, InboxSource] = {}

    def of(self, source: str) -> InboxSource:
        return self.sources.get(source, EVERY_SOURCE)
