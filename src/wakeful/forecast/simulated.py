"""What a forecast needs of the turns it assumes: whoever knows how to open and end them has it."""

from dataclasses import dataclass
from typing import Any, Protocol

from wakeful.store.database import Tx
from wakeful.vocabulary.record import Record


@dataclass(frozen=True)
class OpenTurn:
    """A turn that waits for its model."""

    session_key: str
    answered_at: int
    attempt: Any  # whoever opened it knows what that is
    next: Any


class AssumedAnswer(Record):
    """One question to a model, and its assumed answer."""

    agent_id: str
    source: str
    input: int
    output: int
    cost: float | None
    cost_p90: float | None


class SimulatedTurns(Protocol):
    """Opens turns as lanes do, and goes on with them as if their model had answered."""

    def open(self, tx: Tx, session_key: str) -> OpenTurn | None:
        """Open the next turn of a lane; None if there is none, or it has ended already."""
        ...

    def go_on(self, tx: Tx, turn: OpenTurn) -> OpenTurn | None:
        """Write the answer; None if the turn has ended with it, or was left."""
        ...

    def end_open(self, tx: Tx) -> None:
        """End the turns that were open when the copy was made: their answers are near."""
        ...
