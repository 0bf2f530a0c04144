"""Settings: everything an operator may choose, with a default for each; nobody below reads it."""

from pathlib import Path

from wakeful.intake.bindings import Binding, DmScope
from wakeful.settings.keys import refuse_out_of_bounds
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides, checked
from wakeful.vocabulary.record import Record


class LaneSettings(Record):
    """How many lanes of each pool run at once on this node."""

    main: int = 64  # model turns mostly wait for the network
    subagent: int = 8
    automation: int = 16


class StormSettings(Record):
    """How many turns one source may open in one session, and in how many seconds."""

    turns: int = 8
    window_s: int = 60


class Retention(Record):
    """How long what is settled is kept; transcripts are kept until somebody deletes them."""

    ledger_days: int = 90  # stimuli, turns, deliveries
    event_days: int = 7
    events: int = 1_000_000


class Settings(Record):
    """The settings of one runtime."""

    home: Path | None = None  # None: in memory, gone with the process
    database: str = "sqlite"  # or postgresql://…
    timezone: str = ""  # the user's zone; empty: the machine's
    lanes: LaneSettings = LaneSettings()
    queue: QueueOverrides = NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}  # queue settings per door
    storm: StormSettings = StormSettings()
    bindings: tuple[Binding, ...] = ()
    dm_scope: DmScope = DmScope.MAIN
    identity_links: dict[str, tuple[str, ...]] = {}  # one name for several addresses
    max_chain_depth: int = 16
    retention: Retention = Retention()
    drain_s: float = 30.0  # how long a stop waits for running turns

    def __post_init__(self) -> None:
        refuse_out_of_bounds(self.lanes, "lanes")
        refuse_out_of_bounds(self.storm, "storm")
        refuse_out_of_bounds(self.retention, "retention")
        refuse_out_of_bounds(self, "")
        checked(self.queue)
        for door, overrides in self.doors.items():
            checked(overrides, f"doors.{door}")
        if self.database != "sqlite" and not self.database.startswith(
            ("postgresql://", "postgres://")
        ):
            # Not the value: it may hold a password.
            raise InvalidInput("database", "must be 'sqlite' or postgresql://…")
