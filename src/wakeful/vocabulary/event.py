"""Events: what outsiders may watch."""

from typing import Any

from wakeful.vocabulary.record import Record


class Event(Record):
    """Something that happened, published in the transaction that made it happen."""

    kind: str
    session_key: str | None = None
    turn_id: str | None = None
    stimulus_id: str | None = None
    data: dict[str, Any] = {}
    at: int = 0
    seq: int | None = None  # None: live only, never stored
    epoch: str = ""

    @property
    def cursor(self) -> str | None:
        """Name the position after this event, for a reader that comes back."""
        return None if self.seq is None else f"{self.epoch}-{self.seq}"


def matches(topic: str, kind: str) -> bool:
    """Tell whether a topic (`turn.started`, `turn.*`, `*`) covers a kind of event."""
    return kind.startswith(topic[:-1]) if topic.endswith("*") else kind == topic
