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

        self._loop_lag = Gauge(
            "wakeful_loop_lag_seconds",
            "How long the event loop last took to answer the watchdog.",
            registry=self.registry,
        )
        self._loop_stalls = Counter(
            "wakeful_loop_stalls",
            "Times the event loop was silent for long.",
            registry=self.registry,
        )
        self._timers_late = Gauge(
            "wakeful_timers_late_seconds",
            "How late the timer is that should have fired first.",
            registry=self.registry,
        )

        self._proactive = Counter(
            "wakeful_proactive_events",
            "What agents did by themselves, by agent and what.",
            ["agent", "event"],
            registry=self.registry,
        )
        self._abandoned = Counter(
            "wakeful_abandoned_calls",
            "Calls that did not end when they were told to, by kind.",
            ["kind"],
            registry=self.registry,
        )

        self._webhooks = Counter(
            "wakeful_webhooks",
            "Webhooks that came in, by hook and what became of them; no hook: a name of none.",
            ["hook", "outcome"],
            registry=self.registry,
        )

    def started_at(self, position: int) -> None:
        """Note where the bus stood when counting began."""
        self._position.set(position)

    def committed(self, kinds: Iterable[str], position: int) -> None:
        """Count events whose commit is on disk."""
        for kind, count in Tally(kinds).items():
            self._events.labels(kind).inc(count)
        self._position.set(position)

    def proactive(self, agent_id: str, what: str, count: int = 1) -> None:
        """Count something that an agent did by itself, or could not do."""
        self._proactive.labels(agent_id, what).inc(count)

    def webhook(self, hook: str, outcome: str) -> None:
        """Count a webhook that came in."""
        self._webhooks.labels(hook, outcome).inc()

    def loop_answered(self, lag_s: float) -> None:
        """Note how long the event loop took to answer."""
        self._loop_lag.set(lag_s)

    def loop_stalled(self) -> None:
        """Count one silence of the event loop that was worth a complaint."""
        self._loop_stalls.inc()

    def timers_late(self, late_s: float) -> None:
        """Note how late the first timer is; 0: none is."""
        self._timers_late.set(late_s)

    def abandoned(self, kind: str) -> None:
        """Count a call of a tool or a model that did not end when it was told to."""
        self._abandoned.labels(kind).inc()

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
