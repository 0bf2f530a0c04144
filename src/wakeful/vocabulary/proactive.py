"""How an agent wakes by itself: how often it ticks, how long it may rest, what that may cost."""

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record

SHORTEST_INTERVAL_S = 60


class ProactiveRules(Record):
    """One block of settings: an agent's, or a binding's, which replaces the agent's whole."""

    enabled: bool = False
    tick_interval_secs: int = 600
    jitter_pct: int = 25
    max_idle_secs: int = 86_400  # the longest time without a wake, sleeps included
    initial_greeting: bool = True
    cache_aware_schedule: bool = True  # no sleep ends shortly after a provider forgot the prompt
    allow_short_intervals: bool = False
    daily_turn_budget: int = 200  # ticks and wakes in 24 hours; 0: any number
    light_context: bool = False


class SleepIntent(Record):
    """The sleep that a turn wants; it begins when the turn has ended well."""

    id: str
    reason: str
    requested_ms: int
    final_ms: int
    made_at: int
    wake_at: int
    is_snapped: bool = False  # moved off the edge of a prompt cache


def self_woken(event: Event) -> list[str]:
    """Name what an event tells of how an agent wakes and rests by itself, as it is counted."""
    data = event.data
    match event.kind:
        case "stimulus.accepted" if data.get("origin") == Kind.TICK.origin:
            return ["tick.fired"]
        case "sleep.entered":
            return ["sleep.entered", *(["cache_aware.snapped"] if data.get("is_snapped") else [])]
        case "sleep.woken" if data.get("reason") == "interrupted":
            return ["sleep.interrupted"]
        case _:
            return []


def checked(rules: ProactiveRules, field: str = "proactive") -> ProactiveRules:
    """Return the rules, or refuse two that contradict each other."""
    interval, longest = rules.tick_interval_secs, rules.max_idle_secs
    if interval > longest:
        rule = f"must not be above max_idle_secs ({longest}), but is {interval}"
        raise InvalidInput(f"{field}.tick_interval_secs", rule)
    if interval < SHORTEST_INTERVAL_S and not rules.allow_short_intervals:
        rule = (
            f"must be at least {SHORTEST_INTERVAL_S}, not {interval}; "
            "'allow_short_intervals: true' permits it"
        )
        raise InvalidInput(f"{field}.tick_interval_secs", rule)
    return rules
