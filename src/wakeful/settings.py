"""Settings: everything an operator may choose, with a default for each; nobody below reads it."""

from pathlib import Path

from wakeful.intake.bindings import Binding, DmScope
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
        for pool in LaneSettings.__struct_fields__:
            _check(f"lanes.{pool}", getattr(self.lanes, pool), 1, 10_000)
        _check("storm.turns", self.storm.turns, 1, 100_000)
        _check("storm.window_s", self.storm.window_s, 1, 86_400)
        _check("max_chain_depth", self.max_chain_depth, 1, 1_000)
        _check("retention.ledger_days", self.retention.ledger_days, 1, 36_500)
        _check("retention.event_days", self.retention.event_days, 1, 36_500)
        _check("retention.events", self.retention.events, 1_000, 1_000_000_000)
        _check("drain_s", self.drain_s, 0, 86_400)
        checked(self.queue)
        for door, overrides in self.doors.items():
            checked(overrides, f"doors.{door}")
        if self.database != "sqlite" and not self.database.startswith(
            ("postgresql://", "postgres://")
        ):
            raise InvalidInput(
                "database", f"must be 'sqlite' or postgresql://…, not {self.database[:40]!r}"
            )


def _check(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidInput(key, f"must be from {low} to {high}, not {value}")
