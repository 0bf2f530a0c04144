"""Counters of what was committed, raised after the commit and never before it."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """The counters of one runtime, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._events = Counter(
            "wakeful_events", "Events committed, by kind.", ["kind"], registry=self.registry
        )
        self._position = Gauge(
            "wakeful_bus_position", "Number of the newest event.", registry=self.registry
        )

    def started_at(self, position: int) -> None:
        """Note where the bus stood when counting began."""
        self._position.set(position)

    def committed(self, kinds: Iterable[str], position: int) -> None:
        """Count events whose commit is on disk."""
        for kind, count in Tally(kinds).items():
            self._events.labels(kind).inc(count)
        self._position.set(position)

    def position(self) -> int:
        """Return the number of the newest event that was counted."""
        return int(self.registry.get_sample_value("wakeful_bus_position") or 0)

    def events(self) -> Mapping[str, int]:
        """Return how many events of each kind this process has committed."""
        return {
            sample.labels["kind"]: int(sample.value)
            for family in self._events.collect()
            for sample in family.samples
            if sample.name == "wakeful_events_total"
        }
