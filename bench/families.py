"""Every family of figures, in the order in which they are measured."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import (
    admissions,
    asleep,
    automations,
    commits,
    compacting,
    door,
    fan_out,
    feed,
    forecasts,
    history,
    imports,
    inbox,
    late,
    latency,
    providers,
    recovery,
    server,
    sessions,
    streams,
    timers,
    transfers,
    turns,
    waking,
    webhooks,
)
from bench.figures import Figure


@dataclass(frozen=True)
class Family:
    """Figures that are measured together."""

    name: str
    measure: Callable[[Path], list[Figure]]
    load: Callable[[Path], None]  # what is profiled when a goal is missed


FAMILIES = (
    Family("admissions", admissions.measure, admissions.load),
    Family("inbox", inbox.measure, inbox.load),
    Family("http", door.measure, door.load),
    Family("webhooks", webhooks.measure, webhooks.load),
    Family("fanout", fan_out.measure, fan_out.load),
    Family("server", server.measure, server.load),
    Family("turns", turns.measure, turns.load),
    Family("providers", providers.measure, providers.load),
    Family("streams", streams.measure, streams.load),
    Family("latency", latency.measure, latency.load),
    Family("history", history.measure, history.load),
    Family("compacting", compacting.measure, compacting.load),
    Family("sessions", sessions.measure, sessions.load),
    Family("timers", timers.measure, timers.load),
    Family("late", late.measure, late.load),
    Family("waking", waking.measure, waking.load),
    Family("asleep", asleep.measure, asleep.load),
    Family("automations", automations.measure, automations.load),
    Family("forecasts", forecasts.measure, forecasts.load),
    Family("feed", feed.measure, feed.load),
    Family("recovery", recovery.measure, recovery.load),
    Family("commits", commits.measure, commits.load),
    Family("transfers", transfers.measure, transfers.load),
    Family("import", imports.measure, imports.load),
)


def find(name: str) -> Family | None:
    """Return the family of that name, or the one that has a figure of that name."""
    family = name.partition(".")[0]
    return next((known for known in FAMILIES if known.name == family), None)
