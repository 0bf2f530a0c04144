"""Where an answer goes."""

from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import indexable

# Whoever stands at these doors reads the bus and the transcript: nothing is sent to them.
READ_DOORS = frozenset({"library", "cli", "http", "console", "openai", "a2a"})


class Route(Record):
    """An address at a door; kept with the stimulus, never guessed when the answer is ready."""

    door: str
    address: str = ""
    thread: str = ""
    account: str = ""

    @property
    def target(self) -> str:
        """Name the one receiver whose deliveries keep their order."""
        return indexable("\x1f".join((self.door, self.account, self.address, self.thread)))

    @property
    def is_sent_to(self) -> bool:
        """Tell whether answers must be sent, rather than read by whoever asked."""
        return self.door not in READ_DOORS
